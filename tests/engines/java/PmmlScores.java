import java.util.LinkedHashMap;
import java.util.Map;

import org.jpmml.evaluator.Evaluator;
import org.jpmml.evaluator.LoadingModelEvaluatorBuilder;

/** Scores by JPMML-Evaluator. */
public final class PmmlScores {
    public static void main(String[] arguments) throws Exception {
        Scores.serve((model, names, rows) -> {
            Evaluator evaluator = new LoadingModelEvaluatorBuilder()
                    .load(model.toFile())
                    .build();
            evaluator.verify();
            double[] scores = new double[rows.length];
            for (int row = 0; row < rows.length; row++) {
                Map<String, Object> document = new LinkedHashMap<>();
                for (int k = 0; k < names.length; k++) {
                    document.put(names[k], Double.isNaN(rows[row][k]) ? null : rows[row][k]);
                }
                scores[row] = ((Number) evaluator.evaluate(document).get("score")).doubleValue();
            }
            return scores;
        });
    }
}
