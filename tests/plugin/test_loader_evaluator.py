"""The loader evaluator, which finds the bottleneck of training: logging, replaying, and the verdict."""

from __future__ import annotations

import json

import pytest

from torchdali.plugin.pytorch.loader_evaluator import LoaderEvaluator, Rates, evaluate


class Loader:
    def __init__(self):
        self.loaded = 0

    def __len__(self):
        return 10

    def __iter__(self):
        for i in range(10):
            self.loaded += 1
            yield i


def test_log_passes_batches_through(tmp_path, capsys):
    evaluator = LoaderEvaluator(Loader(), metrics_file=str(tmp_path / "metrics.json"))
    assert list(evaluator) == list(range(10)) and len(evaluator) == 10
    metrics = evaluator.get_metrics()
    assert metrics["total_batches"] == 10 and len(metrics["batch_times"]) == 10
    assert metrics["min_batch_time"] <= metrics["avg_batch_time"] <= metrics["max_batch_time"]
    evaluator.save_metrics()
    assert json.loads((tmp_path / "metrics.json").read_text()) == metrics
    evaluator.print_summary()
    assert "10 batches" in capsys.readouterr().out


def test_replay_loads_some_batches_once():
    loader = Loader()
    evaluator = LoaderEvaluator(loader, mode="replay", num_cached_batches=3)
    for _ in range(2):
        assert len(list(evaluator)) == 10
    assert set(evaluator) == {0, 1, 2}
    assert loader.loaded <= 4 and evaluator.get_metrics()["cache_ready"]


def test_errors():
    with pytest.raises(ValueError, match="'log' or 'replay'"):
        LoaderEvaluator(Loader(), mode="fast")
    with pytest.raises(ValueError, match="file name"):
        LoaderEvaluator(Loader()).save_metrics()


@pytest.mark.parametrize(
    ("rates", "word"),
    [
        (Rates(10, 50, 50, 9), "loader is the bottleneck"),
        (Rates(90, 20, 20, 19), "step is the bottleneck"),
        (Rates(30, 25, 25, 12), "compete"),
    ],
)
def test_verdicts(rates, word):
    assert word in rates.verdict and word in str(rates)


def test_evaluate_accepts_any_loader():
    steps = []
    rates = evaluate(Loader(), steps.append, batches=20)
    assert len(steps) == 3 * 22 and min(rates.loader, rates.step, rates.cached, rates.training) > 0


def test_evaluate_finishes_each_epoch_that_it_starts():
    """DALI's iterators cannot restart in mid-epoch."""
    begun, ended = [], []

    def epoch():
        begun.append(1)
        yield from range(3)
        ended.append(1)

    class Epochs:
        def __iter__(self):
            return epoch()

    evaluate(Epochs(), lambda batch: None, batches=10)
    assert len(begun) - len(ended) <= 1 < len(ended)


def test_evaluate_rejects_an_empty_loader():
    with pytest.raises(ValueError, match="at least one batch"):
        evaluate([], print)
