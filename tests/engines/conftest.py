"""Running engines as fixtures."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.nodes import Engine, ask, class_path, running, version_of
from tests.engines.versions import UNPUBLISHED

PLUGIN = "com.o19s.es.ltr.LtrQueryParserPlugin"
SOLR_CONFIG = """<config>
  <luceneMatchVersion>LATEST</luceneMatchVersion>
  <schemaFactory class="ManagedIndexSchemaFactory"/>
  <requestHandler name="/query" class="solr.SearchHandler"/>
  <query><cache name="QUERY_DOC_FV" class="solr.CaffeineCache" size="4096" regenerator="solr.NoOpRegenerator"/></query>
  <queryParser name="ltr" class="org.apache.solr.ltr.search.LTRQParserPlugin"/>
  <transformer name="features" class="org.apache.solr.ltr.response.transform.LTRFeatureLoggerTransformerFactory">
    <str name="fvCacheName">QUERY_DOC_FV</str>
  </transformer>
</config>
"""
"""What Solr's guide says of learning to rank; the schema is changed by HTTP."""
SOLR_SCHEMA = """<schema name="products" version="1.6">
  <fieldType name="string" class="solr.StrField" docValues="true"/>
  <fieldType name="pfloat" class="solr.FloatPointField" docValues="true"/>
  <fieldType name="pdate" class="solr.DatePointField" docValues="true"/>
  <fieldType name="text" class="solr.TextField">
    <analyzer>
      <tokenizer class="solr.StandardTokenizerFactory"/>
      <filter class="solr.LowerCaseFilterFactory"/>
    </analyzer>
  </fieldType>
  <field name="id" type="string" required="true"/>
  <uniqueKey>id</uniqueKey>
</schema>
"""


@pytest.fixture(scope="module", params=["solr", "solr9"])
def solr(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """An empty collection of Solr."""
    module, home = unpublished(request.param), tmp_path_factory.mktemp("solr")
    conf = home / "products" / "conf"
    conf.mkdir(parents=True)
    Path(home, "solr.xml").write_text("<solr/>")
    Path(home, "products", "core.properties").write_text("name=products\n")
    Path(conf, "solrconfig.xml").write_text(SOLR_CONFIG)
    Path(conf, "managed-schema").write_text(SOLR_SCHEMA)
    with running("SolrNode", request.param, str(home), module=module) as url:
        products, fields = f"{url}/solr/products", {"add-dynamic-field": {"name": "*_f", "type": "pfloat"}}
        ask("POST", f"{products}/schema", fields | {"add-field": {"name": "cell", "type": "string"}})
        yield Engine("solr", version_of(request.param), products)


@pytest.fixture(scope="module", params=["opensearch", "opensearch3", "elasticsearch"])
def plugin(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """An empty OpenSearch or Elasticsearch with its learning-to-rank plugin."""
    engine: str = request.param
    module, home = unpublished(engine), tmp_path_factory.mktemp(engine)
    (home / "config").mkdir()
    if engine == "elasticsearch":
        install(home / "plugins" / "ltr", PLUGIN)
        shutil.make_archive(str(home / "plugins" / "ltr" / "ltr"), "zip", module)
        (home / "plugins" / "ltr" / "ltr.zip").rename(home / "plugins" / "ltr" / "ltr.jar")
        install(home / "modules" / "transport-netty4", "org.elasticsearch.transport.netty4.Netty4Plugin")
        for jar in Path(class_path("transport-netty4")).parent.glob("*netty*.jar"):
            (home / "modules" / "transport-netty4" / jar.name).symlink_to(jar)
        started = running("ElasticsearchNode", engine, str(home))
    else:
        end = "Plugin" if engine == "opensearch" else "ModulePlugin"
        ends = ("transport.Netty4", "painless.Painless", "script.mustache.Mustache")
        plugins = (*(f"org.opensearch.{name}{end}" for name in ends), PLUGIN)
        started = running("OpenSearchNode", engine, str(home), *plugins, module=module)
    with started as url:
        ask("PUT", f"{url}/_ltr")
        yield Engine(engine.rstrip("3"), version_of(engine), url)


def install(folder: Path, plugin: str) -> None:
    """Write what Elasticsearch reads of a plugin beside its jars."""
    folder.mkdir(parents=True)
    lines = {"name": folder.name, "description": "x", "version": "1", "classname": plugin, "java.version": "17"}
    lines |= {"elasticsearch.version": version_of("elasticsearch"), "has.native.controller": "false"}
    (folder / "plugin-descriptor.properties").write_text("".join(f"{name}={value}\n" for name, value in lines.items()))


def unpublished(engine: str) -> str:
    """The class path of what no registry has, for an engine that needs such; skips where nobody gave it."""
    variable = UNPUBLISHED.get(engine)
    if variable is not None and not os.environ.get(variable):
        pytest.skip(f"no registry has the learning-to-rank module of {engine}: give its class path by {variable}")
    return os.environ[variable] if variable is not None else ""
