"""The versions of the engines that tests run: Maven coordinates GROUP:ARTIFACT:VERSION."""

ENGINES = {
    "solr": ("org.apache.solr:solr-core:8.11.4", "org.apache.solr:solr-ltr:8.11.4"),
    "solr9": ("org.apache.solr:solr-test-framework:9.10.0",),
    "opensearch": (
        "org.opensearch:opensearch:2.19.6",
        "org.opensearch.plugin:transport-netty4-client:2.19.6",
        "org.opensearch.plugin:lang-painless:2.19.6",
        "org.opensearch.plugin:lang-mustache-client:2.19.6",
        "org.apache.logging.log4j:log4j-core:2.25.4",
        "org.apache.lucene:lucene-expressions:9.12.3",
        "com.o19s:RankyMcRankFace:0.1.1",
        "com.github.spullara.mustache.java:compiler:0.9.3",
    ),
    "opensearch3": (
        "org.opensearch:opensearch:3.9.0",
        "org.opensearch.plugin:transport-netty4-client:3.9.0",
        "org.opensearch.plugin:lang-painless:3.9.0",
        "org.opensearch.plugin:lang-mustache-client:3.9.0",
        "org.apache.logging.log4j:log4j-core:2.25.5",
        "org.apache.lucene:lucene-expressions:9.7.0",
        "org.apache.lucene:lucene-codecs:10.5.1",
        "com.fasterxml.jackson.core:jackson-core:2.22.1",
        "com.o19s:RankyMcRankFace:0.2.0",
        "com.github.spullara.mustache.java:compiler:0.9.3",
    ),
    "elasticsearch": (
        "org.elasticsearch:elasticsearch:9.0.8",
        "org.apache.lucene:lucene-expressions:10.1.0",
        "com.o19s:RankyMcRankFace:0.1.1",
        "com.github.spullara.mustache.java:compiler:0.9.3",
    ),
    "transport-netty4": ("org.elasticsearch.plugin:transport-netty4:9.0.8",),
    "ranklib": ("com.o19s:RankyMcRankFace:0.2.0",),
    "pmml": ("org.jpmml:pmml-evaluator:1.7.7", "org.jpmml:pmml-evaluator-metro:1.7.7"),
    "pmml4s": ("org.pmml4s:pmml4s_3:1.5.6",),
    "onnx": ("com.microsoft.onnxruntime:onnxruntime:1.29.0",),
    "lightgbm": ("com.microsoft.ml.lightgbm:lightgbmlib:3.3.510",),
    "vespa": ("com.yahoo.vespa:application:8.700.24",),
}
"""Engine -> what is in its class path, with what that depends on."""

LEAST_JAVA = {"opensearch3": 21, "elasticsearch": 21}
"""Engine -> the Java that it needs at least, where that is not 17."""

UNPUBLISHED = {
    "solr9": "RANKTUNE_SOLR_LTR",
    "opensearch": "RANKTUNE_OPENSEARCH_LTR",
    "opensearch3": "RANKTUNE_OPENSEARCH3_LTR",
    "elasticsearch": "RANKTUNE_ELASTICSEARCH_LTR",
}
"""Engine -> the environment variable with the class path of its learning-to-rank module, which no registry has."""
