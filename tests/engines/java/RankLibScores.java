import ciir.umass.edu.learning.DenseDataPoint;
import ciir.umass.edu.learning.Ranker;
import ciir.umass.edu.learning.RankerFactory;

/** Scores by RankLib, to which names are numbers of features. */
public final class RankLibScores {
    public static void main(String[] arguments) throws Exception {
        Scores.serve((model, names, rows) -> {
            Ranker ranker = new RankerFactory().loadRankerFromFile(model.toString());
            double[] scores = new double[rows.length];
            for (int row = 0; row < rows.length; row++) {
                StringBuilder line = new StringBuilder("0 qid:1");
                for (int k = 0; k < names.length; k++) { // RankLib fails at features after the last of a document
                    if (k == names.length - 1 && Double.isNaN(rows[row][k])) rows[row][k] = 0.0;
                    if (!Double.isNaN(rows[row][k])) line.append(' ').append(names[k]).append(':').append(rows[row][k]);
                }
                scores[row] = ranker.eval(new DenseDataPoint(line.append(" # x").toString()));
            }
            return scores;
        });
    }
}
