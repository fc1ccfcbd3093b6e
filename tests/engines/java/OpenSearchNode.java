import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;

import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.http.HttpServerTransport;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.plugins.Plugin;

/** OpenSearch in one node: OpenSearchNode HOME PLUGIN... Prints its port, and ends with its standard input. */
public final class OpenSearchNode extends Node {
    private OpenSearchNode(Environment environment, Collection<Class<? extends Plugin>> plugins) {
        super(environment, plugins, false);
    }

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
        List<Class<? extends Plugin>> plugins = new ArrayList<>();
        for (int k = 1; k < arguments.length; k++) {
            plugins.add(Class.forName(arguments[k]).asSubclass(Plugin.class));
        }
        Environment environment =
                InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), (Path) null, () -> "one");
        Node node = new OpenSearchNode(environment, plugins).start();
        int port = node.injector().getInstance(HttpServerTransport.class).boundAddress().publishAddress().getPort();
        System.out.println("PORT " + port);
        while (System.in.read() >= 0) {}
        node.close();
        System.exit(0);
    }
}
