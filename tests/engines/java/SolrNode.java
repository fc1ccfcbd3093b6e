import java.lang.reflect.Method;

/** Solr with its Jetty runner: SolrNode HOME. Prints its port, and ends with its standard input. */
public final class SolrNode {
    public static void main(String[] arguments) throws Exception {
        Object runner = null;
        for (String place : new String[] {"org.apache.solr.client.solrj.embedded.", "org.apache.solr.embedded."}) {
            try {
                Class<?> config = Class.forName(place + "JettyConfig");
                Object builder = config.getMethod("builder").invoke(null);
                builder.getClass().getMethod("setPort", int.class).invoke(builder, 0);
                builder.getClass().getMethod("setContext", String.class).invoke(builder, "/solr");
                Object built = builder.getClass().getMethod("build").invoke(builder);
                runner = Class.forName(place + "JettySolrRunner")
                        .getConstructor(String.class, config).newInstance(arguments[0], built);
                break;
            } catch (ClassNotFoundException other) {
                continue; // Solr 9 has it in its test framework
            }
        }
        runner.getClass().getMethod("start").invoke(runner);
        Method port = runner.getClass().getMethod("getLocalPort");
        System.out.println("PORT " + port.invoke(runner));
        while (System.in.read() >= 0) {}
        System.exit(0);
    }
}
