import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import ai.vespa.rankingexpression.importer.configmodelview.ImportedMlModels;
import com.yahoo.schema.ApplicationBuilder;
import com.yahoo.schema.RankProfile;
import com.yahoo.search.query.profile.QueryProfileRegistry;
import com.yahoo.searchlib.rankingexpression.ExpressionFunction;
import com.yahoo.searchlib.rankingexpression.RankingExpression;
import com.yahoo.searchlib.rankingexpression.evaluation.DoubleValue;
import com.yahoo.searchlib.rankingexpression.evaluation.MapContext;

/** Scores by the second phase of the profile of a schema, both named cell; the functions of the profile are the features. */
public final class VespaScores {
    private static final Pattern ATTRIBUTE = Pattern.compile("attribute\\([\\w.]+\\)");

    public static void main(String[] arguments) throws Exception {
        Scores.serve((model, names, rows) -> {
            ApplicationBuilder builder = new ApplicationBuilder();
            builder.addSchema(model);
            builder.build(true);
            RankProfile profile = builder.getRankProfileRegistry().get("cell", "cell")
                    .compile(new QueryProfileRegistry(), new ImportedMlModels());
            List<String> words = new ArrayList<>();
            Matcher listed = Pattern.compile("function (\\w+)\\(\\)").matcher(model);
            while (listed.find()) words.add(listed.group(1));
            RankingExpression total = profile.getSecondPhaseRanking();
            Map<String, RankProfile.RankingExpressionFunction> functions = profile.getFunctions();
            double[] scores = new double[rows.length];
            for (int row = 0; row < rows.length; row++) {
                MapContext context = new MapContext();
                for (int k = 0; k < words.size(); k++) {
                    ExpressionFunction function = functions.get(words.get(k)).function();
                    Matcher attribute = ATTRIBUTE.matcher(function.getBody().getRoot().toString());
                    if (!attribute.find()) throw new IllegalStateException("no attribute: " + function);
                    context.put(attribute.group(), new DoubleValue(rows[row][k]));
                }
                for (String word : words) {
                    double value = functions.get(word).function().getBody().evaluate(context).asDouble();
                    context.put(word, new DoubleValue(value));
                    context.put("rankingExpression(" + word + ")", new DoubleValue(value));
                }
                scores[row] = total.evaluate(context).asDouble();
            }
            return scores;
        });
    }
}
