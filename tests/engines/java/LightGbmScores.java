import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;

import com.microsoft.ml.lightgbm.SWIGTYPE_p_double;
import com.microsoft.ml.lightgbm.SWIGTYPE_p_long_long;
import com.microsoft.ml.lightgbm.SWIGTYPE_p_p_void;
import com.microsoft.ml.lightgbm.SWIGTYPE_p_void;
import com.microsoft.ml.lightgbm.lightgbmlib;

/** Scores by LightGBM, as Spark's applications run it. */
public final class LightGbmScores {
    private static final int DOUBLES = 1;
    private static final int RAW = 1;

    public static void main(String[] arguments) throws Exception {
        Path folder = Files.createTempDirectory("lightgbm");
        for (String name : new String[] {"lib_lightgbm.so", "lib_lightgbm_swig.so"}) {
            String place = "/com/microsoft/ml/lightgbm/linux/x86_64/" + name;
            try (InputStream library = LightGbmScores.class.getResourceAsStream(place)) {
                Files.copy(library, folder.resolve(name), StandardCopyOption.REPLACE_EXISTING);
            }
            System.load(folder.resolve(name).toString());
            folder.resolve(name).toFile().deleteOnExit();
        }
        folder.toFile().deleteOnExit();
        Scores.serve((model, names, rows) -> {
            SWIGTYPE_p_p_void handle = lightgbmlib.new_voidpp();
            check(lightgbmlib.LGBM_BoosterLoadModelFromString(Files.readString(model), lightgbmlib.new_intp(), handle));
            SWIGTYPE_p_void booster = lightgbmlib.voidpp_value(handle);
            SWIGTYPE_p_double score = lightgbmlib.new_doubleArray(1);
            SWIGTYPE_p_long_long count = lightgbmlib.new_int64_tp();
            double[] scores = new double[rows.length];
            for (int row = 0; row < rows.length; row++) {
                check(lightgbmlib.LGBM_BoosterPredictForMatSingle(
                        rows[row], booster, DOUBLES, names.length, 1, RAW, 0, -1, "", count, score));
                scores[row] = lightgbmlib.doubleArray_getitem(score, 0);
            }
            check(lightgbmlib.LGBM_BoosterFree(booster));
            return scores;
        });
    }

    private static void check(int result) {
        if (result != 0) throw new IllegalArgumentException(lightgbmlib.LGBM_GetLastError());
    }
}
