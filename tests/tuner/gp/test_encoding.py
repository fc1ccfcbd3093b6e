import numpy as np
import pytest

from ranktune.tuner.gp.encoding import MOST_CORNERS, Axis, AxisRule, AxisRules, SpaceEncoding, keys

AXES = [
    Axis("real", -1.0, 3.0),
    Axis("log", 1e-6, 10.0, log=True),
    Axis("whole", 3, 9, step=1),
    Axis("even", 2, 10, step=2),
    Axis("log whole", 1, 100, step=1, log=True),
    Axis("tenths", -10.2, 10.2, step=0.1),
    Axis("category", choices=4),
    Axis("one", 2.0, 2.0),
    Axis("one log", 1.0, 1.0, step=1, log=True),
]


@pytest.mark.parametrize("axis", AXES, ids=lambda axis: axis.name)
class TestEveryAxis:
    def test_decode_undoes_encode(self, axis: Axis) -> None:
        values = axis.decode(axis.from_unit(np.linspace(0, 1, 57, endpoint=False)))
        np.testing.assert_allclose(axis.decode(axis.encode(values)), values, rtol=1e-12)

    def test_values_lie_in_the_range_and_on_the_grid(self, axis: Axis) -> None:
        values = axis.decode(axis.from_unit(np.random.default_rng(0).random(500)))
        low, high = (0, axis.choices - 1) if axis.choices else (axis.low, axis.high)
        assert low <= values.min() and values.max() <= high
        if axis.step:
            steps = (values - axis.low) / axis.step
            np.testing.assert_allclose(steps, np.rint(steps), atol=1e-9)

    def test_count_is_the_number_of_different_values(self, axis: Axis) -> None:
        values = axis.decode(axis.from_unit(np.linspace(0, 1, 20000, endpoint=False)))
        if np.isfinite(axis.count):
            assert len(np.unique(np.round(values, 9))) == axis.count
            assert len(axis.grid()) == axis.count if axis.count > 1 else True
        else:
            assert len(np.unique(values)) == 20000

    def test_snap_changes_nothing_twice(self, axis: Axis) -> None:
        places = axis.from_unit(np.random.default_rng(0).random(50))
        np.testing.assert_allclose(axis.snap(places), places, atol=1e-12)


def test_values_of_a_grid_get_equal_room() -> None:
    values = Axis("x", 0, 3, step=1).decode((np.arange(4000) + 0.5) / 4000)
    assert np.bincount(values.astype(int)).tolist() == [1000, 1000, 1000, 1000]


def test_log_axis_is_even_in_the_exponent() -> None:
    axis = Axis("x", 1e-4, 1.0, log=True)
    np.testing.assert_allclose(axis.decode(np.array([0.0, 0.25, 0.5, 1.0])), [1e-4, 1e-3, 1e-2, 1.0])


def test_a_value_that_a_log_axis_cannot_hold_has_no_place() -> None:
    assert np.isnan(Axis("x", 1.0, 2.0, log=True).encode(np.array([-1.0, 0.0]))).all()


def conditional_cube() -> SpaceEncoding:
    """A kind of two; a number for kind 0; a category for kind 1; a number where that category is 2."""
    axes = (Axis("kind", choices=2), Axis("x"), Axis("c", choices=3), Axis("y"))
    rules = (AxisRule(1, 0, (0.0,)), AxisRule(2, 0, (1.0,)), AxisRule(3, 2, (2.0,)))
    return SpaceEncoding(axes, AxisRules(rules))


def test_rules_switch_children_of_children_off() -> None:
    rows = np.array([[0, 0.2, 2, 0.3], [1, 0.2, 2, 0.3], [1, 0.2, 0, 0.3]])
    expected = [[True, True, False, False], [True, False, True, True], [True, False, True, False]]
    assert conditional_cube().activity(rows).tolist() == expected


def test_distance_counts_one_for_each_category_that_differs() -> None:
    encoding = conditional_cube()
    rows = encoding.masked(np.array([[0, 0.25, 0, 0], [1, 0, 2, 0.5], [1, 0, 1, 0]]))
    E = encoding.embed(rows)
    squares = ((E[:, None] - E[None]) ** 2).sum(axis=2)
    assert squares[1, 2] == pytest.approx(1)  # c differs; y is at the centre, or absent, which is the same
    assert squares[0, 1] == pytest.approx(1 + (0.25 - 0.5) ** 2 + 1)  # kind, x against the centre, c against absence


def test_many_categories_are_about_as_far_apart_in_few_columns() -> None:
    encoding = SpaceEncoding((Axis("many", choices=2000), Axis("x")), AxisRules((AxisRule(0, 1, (0.0,)),)))
    rows = np.stack([np.append(np.arange(2000.0), np.nan), np.full(2001, 0.25)], axis=1)
    embedded = encoding.embed(rows)
    assert embedded.shape[1] == MOST_CORNERS + 1
    some = embedded[::10]
    squared = ((some[:, None, :] - some[None, :, :]) ** 2).sum(axis=2)[~np.eye(len(some), dtype=bool)]
    assert squared.min() > 0.5 and squared.max() < 1.5 and squared.mean() == pytest.approx(1.0, abs=0.01)
    np.testing.assert_array_equal(embedded, encoding.embed(rows))


def test_masked_rows_that_are_one_configuration_have_one_key() -> None:
    first, second, other = keys(conditional_cube().masked(np.array([[0, 0.5, 0, 0], [0, 0.5, 2, 1], [0, 0.6, 0, 0]])))
    assert first == second != other


def test_everything_counts_configurations_not_combinations() -> None:
    axes = (Axis("kind", choices=2), Axis("x", 0, 4, step=1), Axis("c", choices=3))
    encoding = SpaceEncoding(axes, AxisRules((AxisRule(1, 0, (0.0,)), AxisRule(2, 0, (1.0,)))))
    all_rows = encoding.all_rows()
    assert all_rows is not None and len(all_rows) == 5 + 3
    assert SpaceEncoding((Axis("real"),)).all_rows() is None


def test_an_axis_with_one_value_takes_no_column() -> None:
    encoding = SpaceEncoding((Axis("one", 2.0, 2.0), Axis("only", choices=1), Axis("x"), Axis("c", choices=3)))
    assert encoding.varying == (2, 3) and encoding.axis_of_column.tolist() == [0, 1, 1, 1]
    assert encoding.embed(np.array([[0.5, 0, 0.25, 1]])).tolist() == [[0.25, 0, np.sqrt(0.5), 0]]
