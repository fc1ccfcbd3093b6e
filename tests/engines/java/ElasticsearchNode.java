import java.nio.file.Path;
import java.util.Map;

import org.elasticsearch.common.logging.LogConfigurator;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.env.Environment;
import org.elasticsearch.http.HttpServerTransport;
import org.elasticsearch.node.InternalSettingsPreparer;
import org.elasticsearch.node.Node;
import org.elasticsearch.plugins.PluginsLoader;

/** Elasticsearch in one node: ElasticsearchNode HOME. Prints its port, and ends with its standard input. */
public final class ElasticsearchNode {
    public static void main(String[] arguments) throws Exception {
        Settings settings = Settings.builder()
                .put("path.home", arguments[0])
                .put("cluster.name", "tests")
                .put("node.name", "one")
                .put("discovery.type", "single-node")
                .put("network.host", "127.0.0.1")
                .put("http.port", "0")
                .put("transport.port", "0")
                .put("node.store.allow_mmap", false)
                .put("cluster.routing.allocation.disk.threshold_enabled", false)
                .build();
        LogConfigurator.configureESLogging();
        LogConfigurator.setNodeName("one");
        Environment environment = InternalSettingsPreparer.prepareEnvironment(
                settings, Map.of(), Path.of(arguments[0], "config"), () -> "one");
        PluginsLoader plugins = PluginsLoader.createPluginsLoader(
                PluginsLoader.loadModulesBundles(environment.modulesDir()),
                PluginsLoader.loadPluginsBundles(environment.pluginsDir()), Map.of(), false);
        Node node = new Node(environment, plugins);
        node.start();
        int port = node.injector().getInstance(HttpServerTransport.class).boundAddress().publishAddress().getPort();
        System.out.println("PORT " + port);
        while (System.in.read() >= 0) {}
        node.close();
        System.exit(0);
    }
}
