import java.lang.reflect.Constructor;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

import org.opensearch.Version;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.http.HttpServerTransport;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.plugins.PluginInfo;

/** OpenSearch in one node: OpenSearchNode HOME PLUGIN... Prints its port, and ends with its standard input. */
public final class OpenSearchNode {
    public static void main(String[] arguments) throws Exception {
        Settings settings = Settings.builder()
                .put("path.home", arguments[0])
                .put("cluster.name", "tests")
                .put("node.name", "one")
                .put("discovery.type", "single-node")
                .put("network.host", "127.0.0.1")
                .put("http.port", "0")
                .put("transport.port", "0")
                .put("transport.type", "netty4")
                .put("http.type", "netty4")
                .put("node.store.allow_mmap", false)
                .put("cluster.routing.allocation.disk.threshold_enabled", false)
                .build();
        Constructor<Node> constructor = Node.class.getDeclaredConstructor(
                Environment.class, java.util.Collection.class, boolean.class);
        constructor.setAccessible(true);
        boolean described = constructor.getGenericParameterTypes()[1].toString().contains("PluginInfo"); // OpenSearch 3
        List<Object> plugins = new ArrayList<>();
        for (int k = 1; k < arguments.length; k++) {
            plugins.add(described
                    ? new PluginInfo(arguments[k], "", "1", Version.CURRENT, "17", arguments[k], "", List.of(), false)
                    : Class.forName(arguments[k]));
        }
        Environment environment =
                InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), (Path) null, () -> "one");
        Node node = constructor.newInstance(environment, plugins, false).start();
        int port = node.injector().getInstance(HttpServerTransport.class).boundAddress().publishAddress().getPort();
        System.out.println("PORT " + port);
        while (System.in.read() >= 0) {}
        node.close();
        System.exit(0);
    }
}
