"""What the parsers of search engines accept, written after their own code, and what they make of it.

Vespa: SchemaParser.jj and RankingExpressionParser.jj of vespa-engine/vespa, and the grammar of expressions before
commit 3d49f155 (September 2022), which took || before comparisons. JavaCC takes the longest token, and of equally long
ones the first. Solr: SolrPluginUtils.invokeSetters of apache/solr, and the setters of LinearModel,
MultipleAdditiveTreesModel (since 9.2), Feature, SolrFeature and FieldValueFeature. Plugins: LinearRankerParser and
XGBoostJsonParser of o19s/elasticsearch-learning-to-rank.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

Tokens: TypeAlias = list[tuple[str, str]]
Tree: TypeAlias = "tuple[Any, ...]"
"""An operator or a function, and its operands; a number, a text or a name as ("number", x)."""


class Refused(Exception):
    """What the engine does not load."""


def demand(holds: object, why: str) -> None:
    if not holds:
        raise Refused(why)


def tokens(text: str, kinds: Sequence[tuple[str, str]], skipped: str) -> Tokens:
    """The tokens of a text: the longest that matches, of equally long ones the first."""
    compiled = [(kind, re.compile(pattern)) for kind, pattern in kinds]
    result, at = [], 0
    while at < len(text):
        if text[at] in skipped:
            at += 1
            continue
        found = [(kind, match[0]) for kind, pattern in compiled if (match := pattern.match(text, at))]
        demand(found, f"lexical error: {text[at : at + 20]!r}")
        kind, image = max(found, key=lambda token: len(token[1]))
        at += len(image)
        if kind != "comment":
            result.append((kind, image))
    return [*result, ("end", "")]


class Reader:
    """Tokens that are taken one after another."""

    def __init__(self, read: Tokens) -> None:
        self.read, self.at = read, 0

    def next(self, *wanted: str) -> bool:
        """Whether the next token is one of these kinds or images."""
        return bool({*self.read[self.at]} & {*wanted})

    def take(self, *wanted: str) -> str:
        kind, image = self.read[self.at]
        demand(not wanted or self.next(*wanted), f"encountered {kind} {image[:40]!r}, wanted {wanted}")
        self.at += 1
        return image

    def skip(self, *wanted: str) -> None:
        while self.next(*wanted):
            self.take()


BRACES = ["[^{}]*"]
for _ in range(3):
    BRACES.append(rf"(?:\{{{BRACES[-1]}\}}|[^{{}}])*")
_SCHEMA = (
    ("comment", r"#[^\n\r]*"),
    ("newline", r"\n"),
    ("features", r"match-features[ \f\n\r\t]*\{[^}]*\}"),
    ("expression", rf"expression *:{BRACES[3].replace('[^{}]', chr(91) + '^{}' + chr(92) + 'n]')}\n?"),
    ("expression", rf"expression[ \f\n\r\t]*\{{{BRACES[3]}\}}"),
    ("identifier", r"[a-zA-Z_][a-zA-Z0-9_]*"),
    ("dashed", r"[a-zA-Z_][a-zA-Z0-9_-]*"),
    ("text", r'"[^"]*"|\'[^\']*\''),
    ("double", r"-?[0-9]+\.[0-9]+"),
    ("integer", r"-?[0-9]+"),
    ("long", r"-?[0-9]+L"),
    ("string", r"[a-zA-Z_0-9.]+"),
    ("path", r"[a-zA-Z_][a-zA-Z0-9_\-/.]+"),
    ("sign", r"[{}():,]"),
)
_EXPRESSION = (
    ("comment", r"#[^\n\r]*"),
    ("integer", r"[1-9][0-9]*[lL]?|0[xX][0-9a-fA-F]+[lL]?|0[0-7]*[lL]?"),
    ("float", r"[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?[fFdD]?"),
    ("sign", r"[()\[\]{}+\-/*.%^$,:!]"),
    ("operator", r">=|>|<=|<|~=|!=|==|&&|\|\||[+\-/*%^]"),
    ("text", r'"(?:\\"|[^"])*"|\'(?:\\\'|[^\'])*\''),
    ("name", r"[A-Za-z0-9_@][A-Za-z0-9_@$]*"),
)
NEW = ("|| && >= > <= < ~= != == + - * / % ^").split()
"""Operators, the weakest first."""
OLD = ("+ - || && * / % ^").split()
COMPARISONS = (">=", ">", "<=", "<", "~=", "!=", "==")


class Expression(Reader):
    """An expression, by the grammar of today or (old) by that of before September 2022."""

    def __init__(self, text: str, *, old: bool) -> None:
        super().__init__(tokens(text, _EXPRESSION, " \n\r\t"))
        self.old = old

    def whole(self) -> Tree:
        tree = self.expression()
        self.take("end")
        return tree

    def expression(self) -> Tree:
        tree = self.operation()
        while self.old and self.next(*COMPARISONS):
            tree = (self.take(), tree, self.operation())
        return tree

    def operation(self) -> Tree:
        known = OLD if self.old else NEW
        values, waiting = [self.value()], list[str]()

        def close(level: int) -> None:
            while waiting and known.index(waiting[-1]) >= level:
                right = values.pop()
                values.append((waiting.pop(), values.pop(), right))

        while self.next(*known):
            operator = self.take()
            close(known.index(operator))
            waiting.append(operator)
            values.append(self.value())
        close(0)
        return values[0]

    def value(self) -> Tree:
        if self.next("-"):
            self.take()
            return ("negative", self.value())
        if self.next("integer", "float"):
            image = self.take()
            try:  # Value.parse
                return ("number", float(image) if re.search("[.eE]", image) else float(int(image)))
            except ValueError:
                raise Refused(f"NumberFormatException: {image}") from None
        if self.next("text"):
            return ("text", unquoted(self.take()))
        if self.next("("):
            self.take()
            inner = self.expression()
            self.take(")")
            return inner
        name = self.take("name")
        if not self.next("("):
            return ("name", name)
        self.take("(")
        arguments = [] if self.next(")") else [self.argument()]
        while self.next(","):
            self.take()
            arguments.append(self.argument())
        self.take(")")
        if self.next("."):
            self.take()
            name += "." + self.take("name", "integer", "float")
        demand(name != "if" or len(arguments) == 3, "an if has a test and two values")
        demand(name != "isNan" or len(arguments) == 1, "isNan has one value")
        return (name, *arguments)

    def argument(self) -> Tree:
        """An expression; a.b of a field is a name with an output."""
        tree = self.expression()
        while tree[0] == "name" and self.next("."):
            self.take()
            tree = ("name", f"{tree[1]}.{self.take('name')}")
        return tree


def unquoted(image: str) -> str:
    """com.yahoo.javacc.UnicodeUtilities.unquote."""
    known = {"f": "\f", "n": "\n", "r": "\r", "t": "\t"}
    demand(re.fullmatch(r'"(?:[^"\\]|\\.)*"', image, flags=re.S), f"{image} ends before its end")
    return re.sub(
        r"\\(?:u([0-9a-fA-F]{4})|(.))",
        lambda match: chr(int(match[1], 16)) if match[1] else known.get(match[2], match[2]),
        image[1:-1],
        flags=re.S,
    )


class Profile(Reader):
    """A rank profile: its functions in order, and its phases, as trees of the old and of the new grammar."""

    def __init__(self, text: str) -> None:
        super().__init__(tokens(text, _SCHEMA, " \t\r\f"))
        self.functions: dict[str, list[Tree]] = {}
        self.phases: dict[str, list[Tree]] = {}
        self.skip("newline")
        self.take("rank-profile")
        self.name = self.take("identifier", "dashed", "integer", "string")
        self.take("inherits")
        self.take("identifier", "dashed")
        self.begin()
        while not self.next("}"):
            self.item()
            self.skip("newline")
        self.take()
        self.skip("newline")
        self.take("end")

    def begin(self) -> None:
        self.skip("newline")
        self.take("{")
        self.skip("newline")

    def item(self) -> None:
        if self.next("features"):
            image = self.take()
            self.listed = image[image.index("{") + 1 : image.rindex("}")].split()
            return
        kind = self.take("function", "first-phase", "second-phase", "constants")
        if kind == "constants":
            self.begin()
            while not self.next("}"):
                self.take("identifier")
                self.take(":")
                self.take("double", "integer", "identifier")
                self.skip("newline")
            self.take()
            return
        if kind == "function":
            name = self.take("identifier")
            self.take("(")
            self.take(")")
            demand(name not in self.functions, f"{name} is defined twice")
        self.begin()
        trees: list[Tree] = []
        while not self.next("}"):
            if self.next("rerank-count"):
                self.take()
                self.take(":")
                self.take("integer")
            else:
                trees = self.expression()
            self.skip("newline")
        self.take()
        demand(trees, f"{kind} lacks an expression")
        if kind == "function":
            self.functions[name] = trees
        else:
            self.phases[kind] = trees

    def expression(self) -> list[Tree]:
        image = self.take("expression")
        one_line = re.match(r"expression *:", image)
        text = image[one_line.end() :] if one_line else image[image.index("{") + 1 : image.rindex("}")]
        return [Expression(text, old=old).whole() for old in (False, True)]


OPERATIONS: Mapping[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "<=": lambda a, b: float(a <= b),
    "==": lambda a, b: float(a == b),
    "||": lambda a, b: float(a != 0.0 or b != 0.0),
}


def value_of(tree: Tree, named: Callable[[Tree], float]) -> float:
    """The value of an expression, where named gives that of names, texts and rank features."""
    kind, *parts = tree
    if kind == "number":
        return float(parts[0])
    if kind == "negative":
        return -value_of(parts[0], named)
    if kind == "if":
        return value_of(parts[1 if value_of(parts[0], named) != 0.0 else 2], named)
    if kind == "isNan":
        return float(math.isnan(value_of(parts[0], named)))
    if kind in OPERATIONS:
        left, right = (value_of(part, named) for part in parts)
        return OPERATIONS[kind](left, right)
    return named(tree)


def in_tree(tree: Tree) -> list[Tree]:
    """All parts of a tree, itself first."""
    return [tree, *(part for child in tree[1:] if isinstance(child, tuple) for part in in_tree(child))]


def load_vespa(text: str, fields: Callable[[str, Mapping[str, float]], float] | None = None) -> Callable[..., float]:
    """What scores a document, feature -> value, by the second phase; both grammars must say the same."""
    profile = Profile(text)
    comments = [json.loads(line.strip()[2:]) for line in text.splitlines() if line.startswith('    # "')]
    features = dict(zip(profile.functions, comments, strict=True))
    demand(profile.listed == [*profile.functions], "match-features are the functions")
    for trees in profile.functions.values():
        for part in in_tree(trees[0]):
            demand(part[0] != "name" or part[1] not in features, f"{part[1]} is a function, not a field")

    def score(document: Mapping[str, float]) -> float:
        def of_feature(word: str, which: int) -> float:
            demand(word in features, f"{word} is not defined")
            tree, x = profile.functions[word][which], document.get(features[word], math.nan)
            if any(part[0] == "text" for part in in_tree(tree)) or tree[0] == "/" or "attribute" not in str(tree):
                return 0.0 if math.isnan(x) else x  # what the field is compared with gives the feature
            return value_of(tree, lambda part: x)

        both = [
            value_of(tree, lambda part, k=which: of_feature(part[1], k))  # type: ignore[misc]
            for which, tree in enumerate(profile.phases["second-phase"])
        ]
        demand(both[0] == both[1] or math.isnan(both[0]), "the old grammar reads the profile otherwise")
        return both[0]

    return score


# Solr: a setter takes a value of its own type; one of another type is given to it and fails.

_FEATURE = {"defaultValue": (str, int, float)}
SETTERS: Mapping[str, Mapping[str, tuple[type, ...]]] = {
    "org.apache.solr.ltr.model.LinearModel": {"weights": (dict,)},
    "org.apache.solr.ltr.model.MultipleAdditiveTreesModel": {"trees": (list,), "isNullSameAsZero": (bool,)},
    "org.apache.solr.ltr.feature.SolrFeature": {**_FEATURE, "df": (str,), "q": (str,), "fq": (list,)},
    "org.apache.solr.ltr.feature.FieldValueFeature": {**_FEATURE, "field": (str,)},
    "tree": {"weight": (str,), "root": (dict,)},
    "node": {
        "value": (str,),
        "feature": (str,),
        "threshold": (str,),
        "missing": (str,),
        "left": (dict,),
        "right": (dict,),
    },
}
"""With setters of text and of float, a JSON number is of neither (SOLR-12207): only text is sure to be taken."""
_JAVA_FLOAT = re.compile(r"[+-]?(?:NaN|Infinity|[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?[fFdD]?)")


def invoke_setters(kind: str, params: Mapping[str, Any]) -> None:
    for name, value in params.items():
        demand(name in SETTERS[kind], f"no setter corresponding to {name!r} in {kind}")
        demand(type(value) in SETTERS[kind][name], f"{name} of {kind} is given {value!r:.40}")
        if name in ("threshold", "value", "weight", "defaultValue") and isinstance(value, str):
            demand(_JAVA_FLOAT.fullmatch(value), f"NumberFormatException: {value}")


def load_json(text: str) -> Any:
    """JSON as parsers of Java read it: without NaN and Infinity."""

    def refused(constant: str) -> None:
        raise Refused(f"{constant} is no JSON")

    def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        demand(len(dict(pairs)) == len(pairs), "duplicate field")
        return dict(pairs)

    return json.loads(text, parse_constant=refused, object_pairs_hook=distinct)


def load_solr(text: str) -> None:
    """Check a model as PUT /schema/model-store does."""
    model = load_json(text)
    names = [feature["name"] for feature in model["features"]]
    demand(names and len(set(names)) == len(names), "no features, or duplicated ones")
    invoke_setters(model["class"], model["params"])
    if "weights" in model["params"]:
        for name in names:
            demand(type(model["params"]["weights"].get(name)) in (int, float), f"lacks a weight for {name}")
        return
    waiting = []
    for tree in model["params"]["trees"]:
        invoke_setters("tree", tree)
        demand({"weight", "root"} <= tree.keys(), "a tree has a weight and a root")
        waiting.append(tree["root"])
    while waiting:
        node = waiting.pop()
        invoke_setters("node", node)
        demand(node.get("missing", "left") in ("left", "right"), "missing is a side")
        if "feature" in node:
            demand(node["feature"] in names, f"{node['feature']} is no feature of the model")
            demand({"threshold", "left", "right"} <= node.keys(), "a split lacks a part")
            waiting += [node["left"], node["right"]]
        else:
            demand(not node.keys() & {"left", "right"}, "a leaf has no branches")


def load_solr_features(text: str) -> None:
    """Check what PUT /schema/feature-store gets."""
    for feature in load_json(text):
        demand(isinstance(feature["name"], str) and isinstance(feature["store"], str), "names are text")
        invoke_setters(feature["class"], feature["params"])


def load_plugin(text: str) -> None:
    """Check a model as _createmodel does."""
    model = load_json(text)["model"]
    kind, definition = model["model"]["type"], load_json(model["model"]["definition"])
    if kind == "model/linear":
        for name, weight in definition.items():
            demand(type(weight) in (int, float), f"expected a float for {name}")
        return
    demand(kind == "model/xgboost+json", f"unknown type {kind}")
    if isinstance(definition, dict):
        demand(definition.keys() <= {"objective", "splits", "missing_as_zero"}, "an unknown field")
        demand(type(definition.get("missing_as_zero", False)) is bool, "missing_as_zero is a boolean")
        definition = definition["splits"]
    demand(definition, "must define at least one tree")
    waiting = [*definition]
    fields: Mapping[str, tuple[type, ...]] = {
        **dict.fromkeys(("nodeid", "depth", "yes", "no", "missing"), (int,)),
        **dict.fromkeys(("split_condition", "leaf"), (int, float)),
        "split": (str,),
        "children": (list,),
    }
    while waiting:
        node = waiting.pop()
        for name, value in node.items():
            demand(type(value) in fields.get(name, ()), f"[node] {name} is given {value!r:.40}")
        if "leaf" in node:
            demand("nodeid" in node, "this leaf does not have all the required fields")
            continue
        demand({*fields} - {"leaf", "missing"} <= node.keys(), "this split does not have all the required fields")
        ends = [child["nodeid"] for child in node["children"]]
        demand(ends == [node["yes"], node["no"]], "the structure is invalid")
        waiting += node["children"]
