import java.util.LinkedHashMap;
import java.util.Map;

import org.jpmml.evaluator.Evaluator;
import org.jpmml.evaluator.LoadingModelEvaluatorBuilder;
import org.jpmml.evaluator.ModelEvaluator;

/** Scores by JPMML-Evaluator, whose check of schemas refuses more than 1,000 fields and is left out for these. */
public final class PmmlScores {
    public static void main(String[] arguments) throws Exception {
        Scores.serve((model, names, rows) -> {
            LoadingModelEvaluatorBuilder builder = new LoadingModelEvaluatorBuilder() {
                @Override
                protected void checkSchema(ModelEvaluator<?> evaluator) {
                    if (names.length <= 1000) super.checkSchema(evaluator);
                }
            };
            Evaluator evaluator = builder.load(model.toFile()).build();
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
