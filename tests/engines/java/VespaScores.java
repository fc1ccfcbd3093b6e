import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import com.yahoo.config.FileReference;
import com.yahoo.config.model.application.provider.MockFileRegistry;
import com.yahoo.config.model.deploy.DeployState;
import com.yahoo.config.model.deploy.TestProperties;
import com.yahoo.config.model.test.MockApplicationPackage;
import com.yahoo.searchlib.rankingexpression.RankingExpression;
import com.yahoo.searchlib.rankingexpression.evaluation.DoubleValue;
import com.yahoo.searchlib.rankingexpression.evaluation.MapContext;
import com.yahoo.searchlib.rankingexpression.parser.ParseException;
import com.yahoo.vespa.config.search.RankProfilesConfig;
import com.yahoo.vespa.model.VespaModel;

/**
 * Scores by the second phase of the profile of a schema, both named cell; the functions of the profile are the features.
 * The schema is deployed in an application package, and scored is what the content nodes are configured with.
 */
public final class VespaScores {
    private static final Pattern ATTRIBUTE = Pattern.compile("attribute\\([\\w.]+\\)");
    private static final Pattern SCRIPT = Pattern.compile("rankingExpression\\((.+)\\)\\.rankingScript");
    private static final String SERVICES = """
            <services version="1.0">
              <admin version="2.0"><adminserver hostalias="one"/></admin>
              <content id="shop" version="1.0">
                <redundancy>1</redundancy>
                <documents><document type="cell" mode="index"/></documents>
                <nodes><node hostalias="one" distribution-key="0"/></nodes>
              </content>
            </services>
            """;
    private static final String HOSTS = "<hosts><host name='localhost'><alias>one</alias></host></hosts>";

    /** The files that content nodes get, which are their large expressions. */
    private static final class Large extends MockFileRegistry {
        private final Map<String, RankingExpression> scripts;

        Large(Map<String, RankingExpression> scripts) {
            this.scripts = scripts;
        }

        @Override
        public FileReference addBlob(String name, ByteBuffer blob) {
            String script = StandardCharsets.UTF_8.decode(blob.duplicate()).toString();
            try {
                scripts.put(name.split("\\.")[1], new RankingExpression(script));
            } catch (ParseException error) {
                throw new IllegalStateException(name, error);
            }
            return super.addBlob(name, blob);
        }
    }

    public static void main(String[] arguments) throws Exception {
        Scores.serve((file, names, rows) -> {
            String model = Files.readString(file);
            Map<String, RankingExpression> scripts = new HashMap<>();
            VespaModel deployed = new VespaModel(new DeployState.Builder()
                    .properties(new TestProperties()).fileRegistry(new Large(scripts))
                    .applicationPackage(new MockApplicationPackage.Builder()
                            .withHosts(HOSTS).withServices(SERVICES).withSchemas(List.of(model)).build())
                    .build());
            RankProfilesConfig.Rankprofile profile = deployed
                    .getConfig(RankProfilesConfig.class, "shop/search/cluster.shop/cell")
                    .rankprofile().stream().filter(each -> each.name().equals("cell")).findAny().orElseThrow();
            for (RankProfilesConfig.Rankprofile.Fef.Property property : profile.fef().property()) {
                Matcher script = SCRIPT.matcher(property.name());
                if (script.matches()) scripts.put(script.group(1), new RankingExpression(property.value()));
            }
            List<String> words = new ArrayList<>();
            Matcher listed = Pattern.compile("function (\\w+)\\(\\)").matcher(model);
            while (listed.find()) words.add(listed.group(1));
            double[] scores = new double[rows.length];
            for (int row = 0; row < rows.length; row++) {
                MapContext context = new MapContext();
                for (int k = 0; k < words.size(); k++) {
                    RankingExpression script = scripts.get(words.get(k));
                    Matcher attribute = ATTRIBUTE.matcher(script.getRoot().toString());
                    if (!attribute.find()) throw new IllegalStateException("no attribute: " + script);
                    context.put(attribute.group(), new DoubleValue(rows[row][k]));
                    String name = "rankingExpression(" + words.get(k) + ")";
                    context.put(name, new DoubleValue(script.evaluate(context).asDouble()));
                }
                scores[row] = scripts.get("secondphase").evaluate(context).asDouble();
            }
            return scores;
        });
    }
}
