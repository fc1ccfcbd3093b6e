import java.util.HashMap;
import java.util.Map;

import org.pmml4s.model.Model;

/** Scores by PMML4S. */
public final class Pmml4sScores {
    public static void main(String[] arguments) throws Exception {
        Scores.serve((file, names, rows) -> {
            Model model = Model.fromFile(file.toString());
            double[] scores = new double[rows.length];
            for (int row = 0; row < rows.length; row++) {
                Map<String, Object> document = new HashMap<>();
                for (int k = 0; k < names.length; k++) {
                    if (!Double.isNaN(rows[row][k])) document.put(names[k], rows[row][k]);
                }
                scores[row] = ((Number) model.predict(document).get("score")).doubleValue();
            }
            return scores;
        });
    }
}
