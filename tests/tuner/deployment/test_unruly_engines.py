"""Engines that answer with anything: nothing that they say is believed, and no answer is waited for for ever."""

import gzip
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import numpy as np
import pytest

from ranktune.solvers.core.errors import DataError, ParameterError, RankTuneError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.linear import LinearModel
from ranktune.tuner.deployment import engines
from ranktune.tuner.deployment.shipping import ExportOptions, ship

Answer = Callable[[socket.socket], None]
MODEL = LinearModel(np.array([1.0, 2.0]), "RankSVM", feature_names=("price", "rating"))
QUERIES = Queries.from_arrays(
    np.array([[1.0, 2.0], [3.0, 1.0]]),
    np.zeros(2),
    qid=["mug", "mug"],
    feature_names=("price", "rating"),
    document_ids=np.array(["a", "b"]),
)


class Server:
    """A server that answers requests of a method by a function of the socket, and keeps what it was sent."""

    def __init__(self, answers: dict[str, Answer]) -> None:
        self.answers, self.asked = answers, list[str]()
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.host = f"127.0.0.1:{self.listening.getsockname()[1]}"

    def run(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.listening.accept()
                threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            file = client.makefile("rb")
            lines = [line.decode() for line in iter(file.readline, b"\r\n")]
            length = [int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length")]
            file.read(*length or [0])
            self.asked.append("".join(lines))
            method, place, _ = lines[0].split()
            is_search = place.endswith(("/_search", "/query"))
            self.answers.get("search" if is_search else method, body({}))(client)


@contextmanager
def serving(answers: dict[str, Answer]) -> Iterator[Server]:
    server = Server(answers)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        with suppress(OSError):
            server.listening.shutdown(socket.SHUT_RDWR)
        server.listening.close()
        thread.join(2.0)


def raw(content: bytes, head: str = "200 OK", *lines: str, length: int | None = None) -> Answer:
    begin = f"HTTP/1.1 {head}\r\nContent-Length: {len(content) if length is None else length}\r\n"
    return lambda client: client.sendall((begin + "".join(f"{line}\r\n" for line in lines) + "\r\n").encode() + content)


def body(value: object) -> Answer:
    return raw(json.dumps(value).encode())


def forever(head: bytes, piece: bytes, wait: float) -> Answer:
    def answer(client: socket.socket) -> None:
        client.sendall(head)
        while True:
            client.sendall(piece)
            time.sleep(wait)

    return answer


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
NESTED = b'{"hits":' * 100_000


def hit(entries: object, name: object = "a") -> object:
    return {"hits": {"hits": [{"_id": name, "fields": {"_ltrlog": [{"values": entries}]}}]}}


UNRULY: dict[str, Answer] = {
    "nothing": body({}),
    "an array": body([1]),
    "hits without values": body({"hits": {"hits": [{"_id": "a"}]}}),
    "hits that are no list": body({"hits": {"hits": {"a": 1}}}),
    "entries without a name": body(hit([{"value": 1.0}])),
    "an entry that is a number": body(hit([1.0])),
    "a value that is text": body(hit([{"name": "price", "value": "1.0"}])),
    "a value that is true": body(hit([{"name": "price", "value": True}])),
    "a value that is null": body(hit([{"name": "price", "value": None}])),
    "NaN": raw(json.dumps(hit([{"name": "price", "value": float("nan")}])).encode()),
    "1e999": raw(json.dumps(hit([{"name": "price", "value": 1.0}])).replace("1.0", "1e999").encode()),
    "a number of 10,000 digits": raw(
        json.dumps(hit([{"name": "price", "value": 1.0}])).replace("1.0", "1" * 10_000).encode()
    ),
    "an id that is a list": body(hit([], [["a"]])),
    "duplicate keys": raw(b'{"hits": {}, "hits": {"hits": []}}'),
    "nested": raw(NESTED),
    "a page": raw(b"<html>login</html>", "200 OK", "Content-Type: text/html"),
    "no text": raw(b"\xff\xfe\x00"),
    "cut off": raw(b'{"hits": {"hits": []}}', length=500),
    "cut off at once": raw(b"", length=500),
    "a chunk that is none": lambda client: client.sendall(CHUNKED + b"zz\r\n"),
    "chunks for ever": forever(CHUNKED, b"1\r\n \r\n", 0.02),
    "a byte now and then": forever(OK + b"Content-Length: 1000\r\n\r\n", b" ", 0.1),
    "headers for ever": forever(OK, b"X-More: 1\r\n", 0.1),
    "a head that does not end": forever(OK + b"X-More: ", b"x", 0.1),
    "silence": lambda client: time.sleep(3.0),
    "more than fits": forever(OK + b"Content-Length: 10000000000\r\n\r\n", b" " * 2**16, 0.0),
    "compressed": raw(gzip.compress(b" " * 10**7), "200 OK", "Content-Encoding: gzip"),
    "not HTTP": lambda client: client.sendall(b"SSH-2.0-OpenSSH_9\r\n"),
    "hung up": lambda client: None,
    "401": raw(b'{"error": "who are you"}', "401 Unauthorized", "WWW-Authenticate: Basic"),
    "500": raw(b"<html><h1>\x1b[31mServer Error</h1></html>", "500 Server Error"),
    "a redirect without an address": raw(b"", "302 Found"),
}


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "TIMEOUT", 0.8)
    monkeypatch.setattr(engines, "LARGEST", 2**22, raising=False)


@pytest.mark.parametrize("name", UNRULY)
@pytest.mark.parametrize("format", ["elasticsearch", "solr"])
def test_whatever_a_search_answers_the_model_is_deleted_and_a_sentence_says_why(format: str, name: str) -> None:
    with serving({"search": UNRULY[name]}) as server:
        began = time.monotonic()
        with pytest.raises(RankTuneError, match="The model was deleted there") as caught:
            ship(MODEL, ExportOptions(format), QUERIES, to=f"http://me:se%40cret@{server.host}/solr/shop")
        assert time.monotonic() - began < 5.0
        assert [line for line in server.asked if line.startswith("DELETE")]
        assert "cret" not in str(caught.value) and len(str(caught.value)) < 900


@pytest.mark.parametrize("values", ["price=x", "price=1e999,rating=1", "price=Infinity", 5, None, ["price=1"]])
def test_values_of_solr_that_are_no_numbers(values: object) -> None:
    with serving({"search": body({"response": {"docs": [{"id": "a", "values": values}]}})}) as server:
        with pytest.raises(RankTuneError, match=r"answered with .* The model was deleted there"):
            ship(MODEL, ExportOptions("solr"), QUERIES, to=f"http://{server.host}/solr/shop")


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("method", ["PUT", "POST", "search", "DELETE"])
def test_a_redirect_is_not_followed(code: int, method: str) -> None:
    with serving({}) as other:
        place = f"http://you:hidden@{other.host}/shop?token=abc"
        with serving({method: raw(b"", f"{code} Moved", f"Location: {place}")}) as server:
            with pytest.raises(RankTuneError, match=rf"answered {code} and points to http://you:\*\*\*@") as caught:
                ship(MODEL, ExportOptions("opensearch"), QUERIES, to=f"http://me:secret@{server.host}/shop")
        assert other.asked == []
        assert not any(word in str(caught.value) for word in ("secret", "hidden", "abc"))


@pytest.mark.parametrize("refusal", ["500", "a redirect without an address", "hung up"])
@pytest.mark.parametrize("search", ["nothing", "hits without values", "401"])
def test_a_refused_model_that_cannot_be_deleted_stays_live_and_both_is_said(search: str, refusal: str) -> None:
    with serving({"search": UNRULY[search], "DELETE": UNRULY[refusal]}) as server:
        with pytest.raises(DataError, match=r"(answered with|answered 401).*stays live.*DELETE http") as caught:
            ship(MODEL, ExportOptions("elasticsearch", "mine"), QUERIES, to=f"http://{server.host}/shop")
        assert "'mine'" in str(caught.value)


@pytest.mark.parametrize("name", ["401", "500", "cut off at once", "silence", "nested", "an array", "a page"])
def test_what_answers_creation_so_creates_nothing_that_is_believed(name: str) -> None:
    with serving({"PUT": UNRULY[name]}) as server:
        with pytest.raises(ParameterError, match=r"^(PUT http://127|the engine answered with)"):
            ship(MODEL, ExportOptions("solr"), QUERIES, to=f"http://{server.host}/solr/shop")
        assert not [line for line in server.asked if line.startswith("POST")]
