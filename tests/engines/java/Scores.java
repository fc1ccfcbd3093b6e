import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * Scores documents by models: each line of standard input has the file of a model and that of documents, and its answer
 * is a line of scores, or REFUSED and why. The first line of documents has names, and the others values, empty for
 * absent ones.
 */
interface Scores {
    /** The scores of rows, in which NaN is absent. */
    double[] of(Path model, String[] names, double[][] rows) throws Exception;

    static void serve(Scores scores) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err); // engines print there
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            StringBuilder answer = new StringBuilder();
            try {
                String[] files = line.split("\t");
                List<String> lines = Files.readAllLines(Path.of(files[1]));
                String[] names = lines.get(0).split("\t", -1);
                for (int k = 0; k < names.length; k++) names[k] = URLDecoder.decode(names[k], StandardCharsets.UTF_8);
                double[][] rows = new double[lines.size() - 1][names.length];
                for (int row = 0; row < rows.length; row++) {
                    String[] values = lines.get(row + 1).split("\t", -1);
                    for (int k = 0; k < names.length; k++) {
                        rows[row][k] = values[k].isEmpty() ? Double.NaN : Double.parseDouble(values[k]);
                    }
                }
                for (double score : scores.of(Path.of(files[0]), names, rows)) {
                    answer.append(score).append(' ');
                }
            } catch (Exception | LinkageError | StackOverflowError error) {
                error.printStackTrace();
                answer.setLength(0);
                answer.append("REFUSED ").append(error.toString().replace('\n', ' '));
            }
            answers.println(answer);
            answers.flush();
        }
    }
}
