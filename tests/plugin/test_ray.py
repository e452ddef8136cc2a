"""Ray: batches of actors equal the pipeline's, while actors and nodes start and stop."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch

import torchdali
from tests.helpers.inside import pipeline_of
from torchdali import Pipeline, fn, pipeline_def, types
from torchdali.plugin.pytorch import DALIGenericIterator, DALIRaggedIterator, LastBatchPolicy

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
ray = pytest.importorskip("ray", reason="needs the extra ray")
from ray.cluster_utils import Cluster  # noqa: E402

from torchdali.pipeline._actors import open_pool  # noqa: E402
from torchdali.plugin.ray import RayLoader, RayPipeline, RayStage  # noqa: E402

pytestmark = pytest.mark.slow

ROOT = Path(torchdali.__file__).resolve().parents[1]
COUNT, BATCH = 103, 8
OUTPUTS = ["data", "label"]


@pipeline_def(batch_size=BATCH, num_threads=1, device_id=None)
def noisy(root: str, **options: Any) -> Any:
    data, labels = fn.readers.file(file_root=root, random_shuffle=True, name="reader", **options)
    return fn.cast(data, dtype=types.FLOAT) + fn.random.uniform(range=(0.0, 0.5)), labels


@pipeline_def(batch_size=BATCH, num_threads=1, device_id=None, seed=1)
def decoded(root: str) -> Any:
    data, labels = fn.readers.file(file_root=root, name="reader")
    return fn.decoders.image(data), labels


@pipeline_def(batch_size=BATCH, num_threads=1, device_id=None)
def doubled() -> Any:
    return fn.external_source(name="x") * 2


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Write a folder of small files that contain their index."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "a").mkdir()
    for i in range(COUNT):
        (folder / "a" / f"{i:03}.jpg").write_bytes(bytes([i] * 4))
    return str(folder)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Start a head node without cores for actors, and two nodes."""
    patch = pytest.MonkeyPatch()
    patch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)  # of the nodes' processes
    patch.setenv("RAY_worker_niceness", "0")  # by default, actors have the lowest priority on the machine
    found = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    try:
        found.nodes_of_actors = [found.add_node(num_cpus=4) for _ in range(2)]
        ray.init(found.address, log_to_driver=False)
        yield found
    finally:
        ray.shutdown()
        found.shutdown()
        patch.undo()


@contextlib.contextmanager
def loading(make: Callable[[], Pipeline], **options: Any) -> Iterator[RayLoader]:
    spread = {"num_cpus": 1, "scheduling_strategy": "SPREAD"}
    loader = RayLoader(make, OUTPUTS, "reader", actor_options=spread, **options)
    try:
        yield loader
    finally:
        loader.close()


def local(make: Callable[[], Pipeline], **options: Any) -> DALIGenericIterator:
    options = {"last_batch_policy": LastBatchPolicy.PARTIAL, "auto_reset": True, **options}
    return DALIGenericIterator(make(), OUTPUTS, reader_name="reader", **options)


def data(batches: Any) -> list[torch.Tensor]:
    return [batch[0]["data"] for batch in batches]


def same(left: list[torch.Tensor], right: list[torch.Tensor]) -> bool:
    return len(left) == len(right) and all(map(torch.equal, left, right))


@pytest.mark.parametrize("actors", [1, 2])
@pytest.mark.parametrize(
    ("reader", "iterator"),
    [
        ({}, {}),
        ({}, {"last_batch_policy": LastBatchPolicy.FILL}),
        ({"num_shards": 3, "shard_id": 1, "pad_last_batch": True}, {}),
    ],
    ids=["partial", "fill", "padded shard"],
)
def test_batches_equal_the_batches_of_the_pipeline(
    cluster: Any, root: str, actors: int, reader: dict[str, Any], iterator: dict[str, Any]
) -> None:
    make = functools.partial(noisy, root, seed=5, **reader)
    expected = local(make, **iterator)
    with loading(make, actors=actors, **iterator) as loader:
        for _ in range(3):
            assert same(data(loader), data(expected))


def test_without_a_seed_all_actors_draw_from_one(cluster: Any, root: str) -> None:
    with loading(functools.partial(noisy, root, pad_last_batch=True)) as loader:
        for _ in range(2):
            found = torch.cat(data(loader))[:, 0].floor().int().tolist()
            assert sorted(found) == list(range(COUNT))


def test_states_of_loader_and_pipeline_are_interchangeable(cluster: Any, root: str) -> None:
    make = functools.partial(noisy, root, seed=5)
    with loading(make) as loader:
        batches = iter(loader)
        for _ in range(5):
            next(batches)
        state = loader.state_dict()
        rest = data(batches)
        loader.load_state_dict(state)
        assert same(data(loader), rest)
        pipe = local(make)
        pipe.load_state_dict(state)
        assert same(data(pipe), rest)
        pipe.load_state_dict(state)
        next(pipe)
        loader.load_state_dict(pipe.state_dict())
        assert same(data(loader), rest[1:])


def test_a_failed_batch_is_raised_in_order(cluster: Any, root: str, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    image = b"P6 2 2 255 " + bytes(range(12))
    for i in range(4 * BATCH):
        (tmp_path / "a" / f"{i:03}.ppm").write_bytes(b"broken" if i == 2 * BATCH else image)
    with loading(functools.partial(decoded, str(tmp_path)), last_batch_policy=LastBatchPolicy.FILL) as loader:
        batches = iter(loader)
        for _ in range(2):
            assert next(batches)[0]["data"].shape == (BATCH, 2, 2, 3)
        with pytest.raises(Exception, match=r"decoders\.image(.|\n)*016\.ppm"):
            next(batches)
        assert len(list(batches)) == 1


def test_an_error_of_the_definition_is_raised_immediately(cluster: Any) -> None:
    with pytest.raises(Exception, match=r"readers\.file"):
        RayLoader(functools.partial(noisy, "/no/such/folder"), OUTPUTS, "reader")


def test_too_few_cores_for_actors(cluster: Any, root: str) -> None:
    with pytest.raises(RuntimeError, match="no actor started within 0"):
        RayLoader(functools.partial(noisy, root), OUTPUTS, "reader", actor_options={"num_cpus": 9}, timeout=0.01)


def test_ragged_outputs_and_an_actor_that_joins(cluster: Any, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for i in range(3 * BATCH):
        (tmp_path / "a" / f"{i:03}.ppm").write_bytes(b"P6 1 %d 255 " % (i + 1) + bytes(3 * (i + 1)))
    pipe = RayPipeline(functools.partial(decoded, str(tmp_path)), actors=1)
    try:
        kinds = [DALIRaggedIterator.SPARSE_LIST_TAG, DALIRaggedIterator.DENSE_TAG]
        batches = iter(DALIRaggedIterator(pipe, OUTPUTS, reader_name="reader", output_types=kinds))
        heights = [len(image) for image in next(batches)[0]["data"]]
        pipe.add_actors(1)
        heights += [len(image) for batch in batches for image in batch[0]["data"]]
        assert heights == list(range(1, 3 * BATCH + 1))
    finally:
        pipe.close()


@pytest.mark.parametrize("form", ["function", "actors"])
def test_a_stage_of_ray_data(cluster: Any, form: str) -> None:
    import ray.data

    rows = ray.data.from_items([{"x": np.full(i % 2 + 1, i, np.float32), "key": i} for i in range(20)])
    if form == "function":
        done = rows.map_batches(RayStage(doubled, ["y"]), batch_size=BATCH)
    else:
        done = rows.map_batches(RayStage, fn_constructor_args=(doubled, ["y"]), batch_size=BATCH, concurrency=1)
    found = {row["key"]: row["y"].tolist() for row in done.take_all()}
    assert found == {i: [2.0 * i] * (i % 2 + 1) for i in range(20)}


def rank(root: str, shard: int) -> list[int]:
    """Train one rank of two for an epoch, in a separate process; return its samples."""
    make = functools.partial(noisy, root, seed=5, num_shards=2, shard_id=shard, stick_to_shard=True)
    with loading(make, actors=1) as loader:
        return torch.cat(data(loader))[:, 0].floor().int().tolist()


def test_two_ranks_deliver_each_sample_once(cluster: Any, root: str) -> None:
    work = ray.remote(num_cpus=1)(rank)
    first, second = ray.get([work.remote(root, shard) for shard in (0, 1)], timeout=120)
    assert sorted(first + second) == list(range(COUNT))
    assert abs(len(first) - len(second)) <= 1


def loop(config: dict[str, str]) -> None:
    """Train two epochs in a worker of Ray Train, and resume from the loader's state in the second one."""
    import ray.train

    context = ray.train.get_context()
    shard, folder = context.get_world_rank(), Path(config["seen"])
    shards = {"num_shards": context.get_world_size(), "shard_id": shard, "pad_last_batch": True}
    make = functools.partial(noisy, config["root"], seed=5, **shards)
    state: Any = None
    for epoch in range(2):
        with loading(make, actors=1) as loader:
            if state is not None:
                loader.load_state_dict(state)
            numbers = torch.cat(data(loader))[:, 0].floor().int().tolist()
            state = loader.state_dict()
        # Ray keeps metrics only with checkpoints.
        (folder / f"{epoch} {shard}").write_text(json.dumps(numbers))
        ray.train.report({"samples": len(numbers)})


def test_two_workers_of_ray_train_get_each_sample_once(
    cluster: Any, root: str, tmp_path: Path
) -> None:
    kind = pytest.importorskip("ray.train.torch", reason="needs Ray Train").TorchTrainer
    from ray.train import RunConfig, ScalingConfig

    (tmp_path / "seen").mkdir()
    trainer = kind(
        loop,
        train_loop_config={"root": root, "seen": str(tmp_path / "seen")},
        scaling_config=ScalingConfig(num_workers=2),
        run_config=RunConfig(storage_path=str(tmp_path / "runs")),
    )
    assert trainer.fit().error is None
    orders = []
    for epoch in range(2):
        files = [tmp_path / "seen" / f"{epoch} {shard}" for shard in (0, 1)]
        first, second = (json.loads(file.read_text()) for file in files)
        assert sorted(first + second) == list(range(COUNT))
        assert abs(len(first) - len(second)) <= 1
        orders.append(first)
    assert orders[0] != orders[1]  # the state continued with the next epoch


def test_the_error_of_a_stage_names_the_missing_column() -> None:
    with pytest.raises(KeyError, match=r"\['x'\] have no column"):
        RayStage(doubled, ["y"])({"z": np.zeros(3)})


@pipeline_def(batch_size=BATCH, num_threads=1, device_id=None, seed=1)
def large(root: str) -> Any:
    data, labels = fn.readers.file(file_root=root, name="reader", pad_last_batch=True)
    return fn.cast(fn.cat(*[fn.cat(*[data] * 999)] * 50), dtype=types.FLOAT), labels


def test_memory_of_large_batches_is_reused(cluster: Any, root: str) -> None:
    kept, addresses = [], set()
    with loading(functools.partial(large, root), actors=1) as loader:
        for _ in range(2):
            for i, batch in enumerate(data(loader)[:-1]):
                addresses.add(batch.data_ptr())
                kept += [batch] if i == 3 else []
                assert batch[:, -1].tolist() == list(range(i * BATCH, (i + 1) * BATCH))
    assert len(addresses) < 24
    assert all(each[:, 0].tolist() == list(range(3 * BATCH, 4 * BATCH)) for each in kept)


@pipeline_def(batch_size=BATCH, num_threads=1, device_id=None)
def fed_here() -> Any:
    return fn.external_source(lambda info: np.int64([info.idx_in_epoch]), batch=False) * 2


def test_python_sources_run_in_this_process(cluster: Any) -> None:
    pipe = RayPipeline(fed_here, actors=2)
    try:
        found = [np.concatenate(pipe.run()[0].as_array()).tolist() for _ in range(5)]
        assert found == [[2 * i for i in range(k * BATCH, (k + 1) * BATCH)] for k in range(5)]
    finally:
        pipe.close()


def test_pipelines_that_cannot_run_in_actors_are_rejected(cluster: Any) -> None:
    @pipeline_def(batch_size=BATCH, num_threads=1, device_id=None)
    def own() -> Any:
        return fn.python_function(fn.external_source(lambda: np.zeros(BATCH)), function=lambda x: x)

    with pytest.raises(RuntimeError, match=r"no stage of this pipeline can run in another process: .*python_function"):
        RayPipeline(own).build()


def until(condition: Callable[[], Any]) -> None:
    """Wait for a condition that another thread fulfills."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        threading.Event().wait(0.05)


@pytest.mark.parametrize("kill", ["node", "actor", "stop"])
def test_killed_actors_and_nodes_lose_no_sample(cluster: Any, root: str, kill: str) -> None:
    make = functools.partial(noisy, root, seed=5, pad_last_batch=True)
    expected = data(local(make))
    with loading(make) as loader:
        workers = open_pool(pipeline_of(loader.pipeline)).workers
        until(lambda: all(worker.alive for worker in workers))
        batches, found, longest = iter(loader), [], 0.0
        while True:
            started = time.monotonic()
            batch = next(batches, None)
            longest = max(longest, time.monotonic() - started)
            if batch is None:
                break
            found.append(batch[0]["data"])
            if len(found) == 4 and kill == "node":
                raylet = psutil.Process(ray.get(workers[0].process.actor.ping.remote())).ppid()
                nodes = cluster.nodes_of_actors
                node = next(each for each in nodes if each.all_processes["raylet"][0].process.pid == raylet)
                nodes.remove(node)
                cluster.remove_node(node, allow_graceful=False)
            elif len(found) == 4:
                actor = workers[0].process.actor
                if kill == "actor":
                    ray.kill(actor)
                else:
                    os.kill(ray.get(actor.ping.remote()), signal.SIGSTOP)
            if len(found) == 4 and kill != "stop":
                until(lambda: loader.pipeline.actors_lost)
        assert same(found, expected)
        assert longest < 10
        print(f"{kill} killed: longest wait {longest:.2f} s")
        if kill == "node":
            cluster.nodes_of_actors.append(cluster.add_node(num_cpus=4))
        # Of the next epoch, on any actor.
        assert sorted(torch.cat(data(loader))[:, 0].floor().int().tolist()) == list(range(COUNT))
        # A stopped actor is detected when it gets work. Ray may also start an actor on a node whose end it has not
        # detected.
        exits = open_pool(pipeline_of(loader.pipeline)).exits
        assert len([exit for exit in exits if "while it started" not in exit]) == 1, exits
