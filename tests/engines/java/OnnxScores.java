import java.nio.file.Files;
import java.util.HashMap;
import java.util.Map;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtSession;

/** Scores by ONNX Runtime; the documents are those of one query. */
public final class OnnxScores {
    public static void main(String[] arguments) throws Exception {
        OrtEnvironment environment = OrtEnvironment.getEnvironment();
        Scores.serve((model, names, rows) -> {
            float[][] features = new float[rows.length][names.length];
            for (int row = 0; row < rows.length; row++) {
                for (int k = 0; k < names.length; k++) features[row][k] = (float) rows[row][k];
            }
            try (OrtSession session = environment.createSession(Files.readAllBytes(model))) {
                Map<String, OnnxTensor> given = new HashMap<>();
                given.put("features", OnnxTensor.createTensor(environment, features));
                if (session.getInputNames().contains("queries")) {
                    given.put("queries", OnnxTensor.createTensor(environment, new long[rows.length]));
                }
                try (OrtSession.Result result = session.run(given)) {
                    float[][] found = (float[][]) result.get("score").orElseThrow().getValue();
                    double[] scores = new double[rows.length];
                    for (int row = 0; row < rows.length; row++) scores[row] = found[row][0];
                    return scores;
                }
            }
        });
    }
}
