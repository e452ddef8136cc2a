"""`Loader`: every sample once per epoch, in one process, on ranks and in workers; batches, positions and processes."""

from __future__ import annotations

import functools
import itertools
import multiprocessing
import pickle
import shutil
import warnings
from typing import NamedTuple

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, IterableDataset

from tests.helpers.own_process import in_own_process
from torchdali import Loader, fn, pipeline_def, types


class Squares:
    """Return a pipeline of ``(square, number)`` for a number of records."""

    classes = ("even", "odd")

    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, i):
        return np.float32([i, i * i]), np.int32([i])


@pipeline_def(batch_size=16, num_threads=2, device_id=None)
def squares(size=100, **options):
    return tuple(fn.readers.dataset(dataset=Squares(size), random_shuffle=True, name="Reader", **options))


def numbers(loader):
    """Return the labels of an epoch, batch by batch."""
    return [labels.tolist() for _, labels in loader]


def flat(batches):
    return list(itertools.chain.from_iterable(batches))


# ------------------------------------------------------------ epochs


@pytest.mark.parametrize("size", [1, 15, 16, 17, 100])
def test_every_epoch_has_every_sample_once(size):
    loader = Loader(squares(size))
    epochs = [numbers(loader) for _ in range(4)]
    assert all(sorted(flat(each)) == list(range(size)) for each in epochs)
    assert {len(each) for each in epochs} == {len(loader)} == {-(-size // 16)}
    assert size < 3 or len({tuple(flat(each)) for each in epochs}) == 4


@pytest.mark.parametrize(
    ("size", "ranks", "batch", "last"),
    [
        (97, 3, 16, [[16, 16, 1], [16, 8, 8], [16, 8, 8]]),
        (100, 3, 16, [[16, 16, 1], [16, 16, 2], [16, 16, 1]]),
        (50, 3, 8, [[8, 8, 1], [8, 8, 1], [8, 4, 4]]),
        (11, 4, 3, [[3], [3], [2], [3]]),
        (11, 4, 2, [[2, 1], [2, 1], [1, 1], [2, 1]]),
        (7, 3, 1, [[1, 1], [1, 1], [1, 2]]),
        (6, 3, 1, [[1, 1]] * 3),
        (48, 3, 16, [[16]] * 3),
    ],
)
def test_ranks_deliver_equally_many_batches_and_every_sample_once(size, ranks, batch, last):
    loaders = [Loader(squares(size, shard_id=k, num_shards=ranks, batch_size=batch, seed=k)) for k in range(ranks)]
    for _ in range(4):
        batches = [numbers(loader) for loader in loaders]
        assert sorted(flat(flat(batches))) == list(range(size))
        lengths = [[len(each) for each in own] for own in batches]
        assert sorted(lengths) == sorted(last)
        assert {len(own) for own in lengths} == {len(loader) for loader in loaders}


@pytest.mark.parametrize("ranks", [1, 3])
def test_drop_last_delivers_full_batches_of_different_samples(ranks):
    loaders = [
        Loader(squares(100, shard_id=k, num_shards=ranks, seed=k), drop_last=True) for k in range(ranks)
    ]
    left_out = set()
    for _ in range(4):
        batches = [numbers(loader) for loader in loaders]
        assert {len(own) for own in batches} == {100 // ranks // 16} == {len(loader) for loader in loaders}
        assert {len(each) for each in flat(batches)} == {16}
        seen = flat(flat(batches))
        assert len(set(seen)) == len(seen)
        left_out.add(frozenset(range(100)) - frozenset(seen))
    assert len(left_out) == 4


def test_a_loop_after_break_starts_a_new_epoch():
    loader, reference = Loader(squares(seed=4)), Loader(squares(seed=4))
    expected = [numbers(reference) for _ in range(4)]
    for batches in (2, 1, 7):  # also after the last batch, but before the end of the loop
        for i, _ in enumerate(loader):
            if i + 1 == batches:
                break
    assert numbers(loader) == expected[3]


def test_a_break_before_the_first_batch_has_no_effect():
    loader = Loader(squares(seed=4))
    iter(loader)
    assert numbers(loader) == numbers(Loader(squares(seed=4)))


def test_two_concurrent_loops_are_rejected():
    loader = Loader(squares())
    first = iter(loader)
    next(first)
    next(iter(loader))
    with pytest.raises(RuntimeError, match="only one loop over a Loader"):
        next(first)


def test_set_epoch_chooses_the_order():
    reference = Loader(squares(97, seed=3))
    expected = [numbers(reference) for _ in range(4)]
    loader = Loader(squares(97, seed=3))
    for epoch in (2, 0, 3, 3, 1):
        loader.set_epoch(epoch)
        assert numbers(loader) == expected[epoch]
    assert numbers(loader) == expected[2]


@pytest.mark.thin(2)
@pytest.mark.parametrize(("size", "ranks", "batch"), [(97, 3, 16), (7, 3, 1), (50, 3, 8), (48, 1, 16), (97, 1, 16)])
def test_a_saved_position_continues_with_the_next_sample(size, ranks, batch):
    for rank in range(ranks):
        make = functools.partial(squares, size, shard_id=rank, num_shards=ranks, batch_size=batch)
        reference = Loader(make(seed=5))
        expected = [numbers(reference) for _ in range(2)]
        for taken in range(len(reference) + 1):
            loader = Loader(make(seed=5))
            head = [labels.tolist() for _, labels in itertools.islice(loader, taken)]
            resumed = Loader(make(seed=9))
            resumed.load_state_dict(loader.state_dict())
            rest = numbers(resumed)
            if taken == len(reference):
                assert rest == expected[1]
            else:
                assert head + rest == expected[0]
                assert numbers(resumed) == expected[1]


def test_sources_in_python_end_the_epoch():
    @pipeline_def(batch_size=4, num_threads=1, device_id=None)
    def fed():
        return fn.external_source(source=[np.zeros((4, 2), np.float32)] * 3, cycle="raise")

    loader = Loader(fed())
    assert [[len(batch) for batch in loader] for _ in range(2)] == [[4, 4, 4]] * 2
    with pytest.raises(TypeError, match="size="):
        len(loader)
    with pytest.raises(TypeError, match="number of samples is unknown"):
        loader.dataset_size  # noqa: B018
    loader.set_epoch(3)  # frameworks call it


# ------------------------------------------------------------ batches


def test_batches_are_tuples_with_labels_for_a_loss():
    images, labels = next(iter(Loader(squares())))
    assert (images.shape, images.dtype) == ((16, 2), torch.float32)
    assert (labels.shape, labels.dtype) == ((16,), torch.int64)
    torch.nn.functional.cross_entropy(torch.zeros(16, 100), labels)


@pytest.mark.parametrize(
    ("value", "shape", "dtype"),
    [
        (np.int32([3]), (16,), torch.int64),
        (np.int64(3), (16,), torch.int64),
        (np.int16(3), (16,), torch.int64),
        (np.float32([0.7]), (16, 1), torch.float32),
        (np.int32([1, 0, 1]), (16, 3), torch.int32),
        (np.int32([[3]]), (16, 1, 1), torch.int32),
        (np.uint8([3]), (16, 1), torch.uint8),
        (np.bool_(True), (16,), torch.bool),
    ],
)
def test_only_integers_with_one_value_per_sample_become_labels(value, shape, dtype):
    @pipeline_def(batch_size=16, num_threads=1, device_id=None)
    def define():
        return fn.readers.dataset(dataset=[value] * 16)

    batch = next(iter(Loader(define())))
    assert (tuple(batch.shape), batch.dtype) == (shape, dtype)


class Pair(NamedTuple):
    square: torch.Tensor
    number: torch.Tensor


def test_names_make_dictionaries_and_classes_make_named_tuples():
    batch = next(iter(Loader(squares(), outputs=["square", "number"])))
    assert list(batch) == ["square", "number"] and batch["number"].dtype == torch.int64
    assert isinstance(next(iter(Loader(squares(), outputs=Pair))), Pair)
    with pytest.raises(RuntimeError, match="must name 2 outputs of the pipeline, got 1"):
        next(iter(Loader(squares(), outputs=["square"])))


@pytest.fixture
def folder(tmp_path):
    for i in range(10):
        path = tmp_path / "train" / f"class{i % 2}" / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (40 + i, 30), (i, 0, 0)).save(path)
    return tmp_path / "train"


@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def pictures(root):
    files, labels = fn.readers.file(file_root=str(root), name="Reader")
    return fn.decoders.image(files), labels


def test_ragged_outputs_are_lists(folder):
    loader = Loader(pictures(folder), outputs=["image", "label"], ragged=["image"])
    assert [[image.shape[1] for image in batch["image"]] for batch in loader] == [
        [40, 42, 44, 46], [48, 41, 43, 45], [47, 49]
    ]
    assert [len(images) for images, _ in Loader(pictures(folder), ragged=[0])] == [4, 4, 2]
    with pytest.raises(RuntimeError, match=r"output 'image' must have the same shape.*ragged=\['image'\]"):
        list(Loader(pictures(folder), outputs=["image", "label"]))


def test_file_names_and_classes(folder):
    loader = Loader(pictures(folder), ragged=[0], file_names=True)
    names = [batch[-1] for batch in loader]
    assert [len(each) for each in names] == [4, 4, 2]
    assert names[0][:2] == ["class0/0.png", "class0/2.png"]
    assert loader.classes == ["class0", "class1"] and loader.dataset_size == 10 and loader.batch_size == 4
    assert next(iter(Loader(pictures(folder), outputs=["a", "b"], ragged="a", file_names=True)))["file_names"]
    assert Loader(squares()).classes == ["even", "odd"]
    with pytest.raises(AttributeError, match="file_root"):
        Loader(plain(), classes=None).classes  # noqa: B018
    assert Loader(plain(), classes=["x"]).classes == ["x"]


@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def plain():
    return fn.readers.dataset(dataset=[np.float32([0])] * 8)


# ------------------------------------------------------------ several readers, ranks, processes


@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def two_readers(first, second):
    return tuple(
        fn.readers.dataset(dataset=[np.int32([i]) for i in range(size)], random_shuffle=True) for size in (first, second)
    )


def test_two_readers_advance_together():
    loader = Loader(two_readers(10, 10))
    for _ in range(3):
        assert all(torch.equal(first, second) for first, second in loader)


def test_readers_of_different_sizes_need_a_name():
    with pytest.raises(RuntimeError, match=r"differ in size.*reader_name="):
        len(Loader(two_readers(10, 8)))


def test_ranks_of_torchrun_divide_the_readers(monkeypatch):
    seen = []
    monkeypatch.setenv("WORLD_SIZE", "3")
    for rank in range(3):
        monkeypatch.setenv("RANK", str(rank))
        seen += flat(numbers(Loader(squares(97, shard_id=0, num_shards=1))))
    assert sorted(seen) == list(range(97))


def test_a_pipeline_created_before_the_ranks_were_known_is_rebuilt(monkeypatch):
    loader = Loader(squares(96))
    assert len(loader) == 6
    monkeypatch.setenv("WORLD_SIZE", "3")
    monkeypatch.setenv("RANK", "1")
    assert len(loader) == 2 and len(flat(numbers(loader))) == 32


def test_shards_of_the_pipeline_are_unchanged(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "8")
    monkeypatch.setenv("RANK", "7")
    assert len(flat(numbers(Loader(squares(96, shard_id=0, num_shards=3))))) == 32


LAUNCHED = {
    "srun": ({"SLURM_NTASKS": "2"}, "srun has started 2 processes"),
    "mpirun": ({"OMPI_COMM_WORLD_SIZE": "4"}, "mpirun has started 4 processes"),
    "mpiexec": ({"PMI_SIZE": "3", "PMI_RANK": "1"}, "mpiexec has started 3 processes"),
    "one task": ({"SLURM_NTASKS": "1"}, ""),
    "one task of a large job": ({"SLURM_NTASKS": "8", "SLURM_STEP_NUM_TASKS": "1"}, ""),
    "torchrun in a job": ({"SLURM_NTASKS": "2", "RANK": "0", "WORLD_SIZE": "2"}, ""),
    "no number": ({"SLURM_NTASKS": "2(x4)"}, ""),
}


@pytest.fixture
def never_warned(monkeypatch):
    monkeypatch.setattr("torchdali.plugin._ranks._warned", set())


@pytest.mark.usefixtures("never_warned")
@pytest.mark.parametrize(("environment", "text"), LAUNCHED.values(), ids=LAUNCHED)
def test_ranks_that_only_a_launcher_knows_warn_once(environment, text, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(2):
            len(Loader(squares(96)))
    texts = [str(each.message) for each in seen]
    assert len(texts) == bool(text)
    for found in texts:
        assert found.startswith(text) and "init_process_group" in found and "shard_id" in found


@pytest.mark.usefixtures("never_warned")
@pytest.mark.parametrize("known", ["shards", "not distributed", "a process group"])
def test_explicit_shards_do_not_warn(known, monkeypatch):
    from torch.testing._internal.distributed.fake_pg import FakeStore

    monkeypatch.setenv("SLURM_NTASKS", "2")
    shards = {"shard_id": 1, "num_shards": 2} if known == "shards" else {}
    if known == "a process group":
        torch.distributed.init_process_group("fake", rank=0, world_size=1, store=FakeStore())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            len(Loader(squares(96, **shards), distributed=known != "not distributed"))
    finally:
        if known == "a process group":
            torch.distributed.destroy_process_group()


def around(loader, workers=0):
    """Return the samples of two epochs of a DataLoader around a Loader."""
    epochs = DataLoader(loader, batch_size=None, num_workers=workers)
    return [flat(numbers(epochs)) for _ in range(2)]


def used(loader):
    """Return a Loader whose pipeline runs."""
    next(iter(loader))
    return loader


# Workers run in a separate process: forking a process with the threads of other tests is not safe.
@pytest.mark.parametrize(
    "call",
    [
        pytest.param("around(Loader(functools.partial(squares, 97, seed=1)))", marks=pytest.mark.slow),
        pytest.param("around(Loader(functools.partial(squares, 97, seed=1)), 2)", marks=pytest.mark.slow),
        pytest.param("around(used(Loader(squares(97))), 2)", marks=pytest.mark.slow),
    ],
)
def test_a_dataloader_accepts_a_loader(call):
    assert issubclass(Loader, IterableDataset)
    epochs = in_own_process("tests.plugin.test_loader", call)
    assert all(sorted(each) == list(range(97)) for each in epochs)
    assert epochs[0] != epochs[1]


def around_on_ranks(context, persistent):
    """Return, epoch by epoch, the samples of DataLoaders with workers, of two ranks that only torch.distributed knows."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    ranks = []
    for rank in range(2):
        torch.distributed.init_process_group("fake", rank=rank, world_size=2, store=FakeStore())
        torch.manual_seed(rank)  # the seeds of the workers, too
        options = {"num_workers": 2, "multiprocessing_context": context, "persistent_workers": persistent}
        epochs = DataLoader(Loader(squares), batch_size=None, **options)
        ranks.append([flat(numbers(epochs)) for _ in range(3)])
        torch.distributed.destroy_process_group()
    return [first + second for first, second in zip(*ranks, strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("context", [c for c in ("fork", "forkserver") if c in multiprocessing.get_all_start_methods()] + ["spawn"])
def test_workers_of_all_ranks_start_the_same_epoch_with_their_shards(context, persistent):
    epochs = in_own_process("tests.plugin.test_loader", f"around_on_ranks({context!r}, {persistent})")
    assert [sorted(each) for each in epochs] == [list(range(100))] * 3
    assert epochs[0] != epochs[1] != epochs[2]


def test_an_unpickled_loader_is_rebuilt():
    loader = Loader(squares(97, seed=3), outputs=["square", "number"])
    first = [batch["number"].tolist() for batch in loader]
    again = pickle.loads(pickle.dumps(loader))
    assert [batch["number"].tolist() for batch in again] == first


def test_loaders_that_cannot_be_rebuilt_raise_an_error():
    pipe = squares()
    pipe.factory = None
    loader = Loader(pipe)
    with pytest.raises(TypeError, match="function that creates the pipeline"):
        pickle.dumps(loader)
    loader.close()
    assert len(loader) == 7
    loader.close()
    with pytest.raises(RuntimeError, match="function that creates the pipeline"):
        len(loader)
    with pytest.raises(TypeError, match="Loader must get a pipeline"):
        Loader(3)


def test_a_closed_loader_starts_again():
    with Loader(squares(97, seed=1)) as loader:
        first = numbers(loader)
    assert numbers(loader) == first
    loader.close()


def test_a_loader_reports_its_position(capsys):
    loader = Loader(squares(97))
    assert repr(loader) == "<Loader, not yet used>"
    next(iter(loader))
    assert repr(loader) == "<Loader: epoch 0, batch 1 of 7>"
    loader.explain_epoch()
    assert "97 samples" in capsys.readouterr().out
    assert "readers.dataset" in str(loader.stats())


def test_failing_samples_raise_and_the_next_loop_continues():
    class Failing(Squares):
        def __getitem__(self, i):
            if i == 40:
                raise KeyError("record 40 is lost")
            return super().__getitem__(i)

    @pipeline_def(batch_size=16, num_threads=2, device_id=None)
    def define():
        return tuple(fn.readers.dataset(dataset=Failing(97), name="Reader"))

    loader = Loader(define())
    for _ in range(2):
        batches = iter(loader)
        assert flat(labels.tolist() for _, labels in itertools.islice(batches, 2)) == list(range(32))
        with pytest.raises(KeyError, match="record 40 is lost"):
            next(batches)


# ------------------------------------------------------------ from_folder


def test_from_folder_trains_and_tests(folder):
    training = Loader.from_folder(folder, train=True, size=16, batch_size=4, seed=1, num_threads=2)
    images, labels = next(iter(training))
    assert (images.shape, images.dtype, labels.dtype) == ((4, 3, 16, 16), torch.float32, torch.int64)
    testing = Loader.from_folder(folder, train=False, size=16, batch_size=4, mean=[0, 0, 0], std=[1, 1, 1])
    batches = list(testing)
    assert [len(images) for images, _ in batches] == [4, 4, 2]
    assert flat(labels.tolist() for _, labels in batches) == [0] * 5 + [1] * 5
    reds = torch.cat([images for images, _ in batches])[:, 0, 8, 8] * 255
    assert torch.allclose(reds, torch.tensor([0.0, 2, 4, 6, 8, 1, 3, 5, 7, 9]), atol=1e-4)


def test_from_folder_accepts_a_seed(folder):
    epochs = [
        torch.cat([images for images, _ in Loader.from_folder(folder, train=True, size=16, batch_size=4, seed=seed)])
        for seed in (1, 1, 2)
    ]
    assert torch.equal(epochs[0], epochs[1]) and not torch.equal(epochs[0], epochs[2])


@pytest.mark.parametrize("augment", ["rand", "auto", "trivial", lambda images: fn.cast(images, dtype=types.UINT8)])
def test_from_folder_augments(folder, augment):
    loader = Loader.from_folder(folder, train=True, size=16, batch_size=4, augment=augment, num_threads=2)
    assert sum(len(images) for images, _ in loader) == 10


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("where", ["1MB", "folder"])
def test_from_folder_caches_images(folder, train, where, tmp_path):
    def epochs(cache):
        with Loader.from_folder(folder, train=train, size=16, batch_size=4, seed=1, num_threads=2, cache=cache) as loader:
            found = [torch.cat([images for images, _ in loader]) for _ in range(3)]
            return found, loader.pipeline.stats().caches

    expected, none = epochs(None)
    found, lines = epochs(str(tmp_path / "kept") if where == "folder" else where)
    assert none == () and "10 samples" in lines[0] and " 0 hits" not in lines[0]
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0.02)  # a level, normalized: less is fused
    assert (tmp_path / "kept").exists() == (where == "folder")


def test_from_folder_skips_hidden_names(folder):
    shutil.copytree(folder / "class0", folder / ".ipynb_checkpoints")
    shutil.copy(folder / "class0" / "0.png", folder / "class0" / "._0.png")
    (folder / ".git").mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for train in (True, False):
            with Loader.from_folder(folder, train=train, size=16, batch_size=4) as loader:
                assert loader.classes == ["class0", "class1"] and loader.dataset_size == 10
                assert sorted(flat(labels.tolist() for _, labels in loader)) == [0] * 5 + [1] * 5


def png(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (20, 20)).save(path)


@pytest.mark.parametrize("content", [(), ("notes.txt",), ("deeper/1.png",), (".hidden.png",)])
def test_from_folder_warns_about_classes_without_files(folder, content):
    (folder / "class05").mkdir()
    for name in content:
        png(folder / "class05" / "x.png")
        (folder / "class05" / name).parent.mkdir(exist_ok=True)
        (folder / "class05" / "x.png").rename(folder / "class05" / name)
    with Loader.from_folder(folder, train=False, size=16, batch_size=4) as loader:
        with pytest.warns(UserWarning, match=r"1 of 3 class folders have no readable file, 'class05'; the classes keep their labels"):
            assert loader.classes == ["class0", "class05", "class1"]
        assert flat(labels.tolist() for _, labels in loader) == [0] * 5 + [2] * 5


@pytest.mark.parametrize("ending", ["gif", "avif", "tga", "ico", "jfif"])
def test_from_folder_warns_about_skipped_images(folder, ending):
    png(folder / "class1" / f"a.{ending}.png")
    (folder / "class1" / f"a.{ending}.png").rename(folder / "class1" / f"a.{ending.upper()}")
    message = rf"1 decodable files are skipped .* 'class1/a\.{ending.upper()}'"
    with Loader.from_folder(folder, train=False, size=16, batch_size=4) as loader, pytest.warns(UserWarning, match=message):
        assert loader.dataset_size == 10


def test_from_folder_accepts_the_classes_of_another_loader(folder, tmp_path):
    for name in ("ant", "bee", "cat"):
        png(tmp_path / "all" / name / "1.png")
    for name in ("cat", "bee"):
        png(tmp_path / "val" / name / "1.png")
    with Loader.from_folder(tmp_path / "all", train=True, size=8, batch_size=4) as training:
        for train in (True, False):
            options = {"train": train, "size": 8, "batch_size": 4, "classes": training.classes}
            with Loader.from_folder(tmp_path / "val", **options) as testing:
                assert testing.classes == ["ant", "bee", "cat"]
                ((_, labels),) = testing
                assert sorted(labels.tolist()) == [1, 2] and labels.dtype == torch.int64
        with pytest.raises(ValueError, match=r"but 2 are missing: 'class0', 'class1'"):
            Loader.from_folder(folder, train=False, classes=training.classes)
    with pytest.raises(TypeError, match="must be a list of names"):
        Loader.from_folder(folder, train=False, classes="class0")
    with pytest.raises(ValueError, match="classes can only be used with a local folder"):
        Loader.from_folder("memory://val", train=False, classes=["class0"])


def test_from_folder_on_a_folder_of_splits_names_the_splits(tmp_path):
    for part in ("train", "val"):
        png(tmp_path / part / "ant" / "1.png")
    with pytest.raises(RuntimeError, match=rf"for example 'train/ant'; if those are the classes, pass {str(tmp_path / 'train')!r}"):
        list(Loader.from_folder(tmp_path, train=True, size=8))


def test_from_folder_checks_its_arguments(folder):
    with pytest.raises(TypeError, match="train must be True or False, got 'val'"):
        Loader.from_folder(folder, train="val")
    for size in (0, 22.5, (64, 0), (64,), (64, 32, 3), "32", None):
        with pytest.raises(ValueError, match=r"size must be the height and width"):
            Loader.from_folder(folder, train=True, size=size)
    for size in (0, -1, 2.5):
        with pytest.raises(ValueError, match=f"batch_size must be at least 1, got {size}"):
            Loader.from_folder(folder, train=True, batch_size=size)
    with pytest.raises(ValueError, match=r"num_threads must be None.*got -1"):
        Loader.from_folder(folder, train=True, num_threads=-1)


def test_from_folder_skips_unreadable_files(folder, tmp_path):
    copied = tmp_path / "copy"
    shutil.copytree(folder, copied)
    files = sorted(path for path in copied.rglob("*") if path.is_file())
    files[0].write_bytes(b"broken")
    options = {"train": False, "size": 16, "batch_size": 4}
    with Loader.from_folder(copied, bad_samples="skip", **options) as loader:
        assert sum(len(images) for images, _ in loader) == len(files) - 1
    with Loader.from_folder(copied, **options) as loader, pytest.raises(RuntimeError, match=files[0].name):
        list(loader)


def test_from_folder_rejects_unknown_arguments(folder):
    with pytest.raises(ValueError, match="auto, rand, trivial"):
        Loader.from_folder(folder, train=True, augment="mixup")
    with pytest.raises(ValueError, match="train=True"):
        Loader.from_folder(folder, train=False, augment="rand")


def test_a_missing_folder_is_named_immediately(tmp_path):
    (tmp_path / "train").mkdir()
    with pytest.raises(FileNotFoundError, match=r"trian.*did you mean train"):
        Loader.from_folder(tmp_path / "trian", train=True)


def test_the_error_of_a_misspelt_argument_names_the_function(folder):
    with pytest.raises(TypeError, match=r"from_folder\(\) got an unexpected keyword argument 'batchsize'"):
        Loader.from_folder(folder, train=True, batchsize=4)


@pytest.mark.parametrize("form", [{"mean": [123.7, 116.3, 103.5]}, {"std": [58, 57, 57]}])
def test_from_folder_warns_about_mean_and_deviation_of_bytes(folder, form):
    with pytest.warns(UserWarning, match=r"on the scale 0 to 1, got .*: divide both by 255") as said:
        Loader.from_folder(folder, train=True, **form)
    assert said[0].filename == __file__


def test_a_dataloader_that_makes_batches_of_batches_warns():
    loader = Loader(squares())
    for options in ({}, {"batch_size": 2}):
        with pytest.warns(UserWarning, match=r"batches of batches.*DataLoader\(loader, batch_size=None\)") as said:
            values, _ = next(iter(DataLoader(loader, **options)))
        assert values.shape[:2] == (options.get("batch_size", 1), 16)
        assert [each.filename for each in said] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        next(iter(loader))
        next(iter(DataLoader(loader, batch_size=None)))
        next(iter(DataLoader(loader, collate_fn=lambda batches: batches[0])))


def test_two_outputs_of_one_name_are_rejected():
    with pytest.raises(ValueError, match=r"outputs must have different names.*\['a', 'a'\]"):
        Loader(squares(), outputs=["a", "a"])


def test_a_function_without_its_decorator_is_rejected():
    with pytest.raises(TypeError, match=r"must return a pipeline, got .*DataNode.*\. Is @pipeline_def\(.*\) missing above the function\?$"):
        len(Loader(lambda: fn.random.uniform()))


def test_a_function_that_returns_no_pipeline_is_rejected():
    with pytest.raises(TypeError, match="must return a pipeline, got 3"):
        len(Loader(lambda: 3))


def test_a_loader_has_a_length_and_a_dataset_as_a_dataloader(folder):
    with Loader.from_folder(folder, train=True, size=16, batch_size=4) as loader:
        assert len(loader.dataset) == loader.dataset_size > 0
        with pytest.raises(TypeError, match="cannot be indexed"):
            loader.dataset[0]


@pipeline_def(batch_size=4, num_threads=1, device_id=None)
def random_numbers():
    return fn.random.uniform()


def test_the_argument_size_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with Loader(random_numbers, size=8) as loader:
            assert len(loader) == 2


def test_the_error_names_a_batch_of_only_bad_samples(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "broken.jpg").write_bytes(b"\xff\xd8\xff nothing")

    @pipeline_def(batch_size=1, num_threads=1, device_id=None, bad_samples="skip")
    def define():
        data, labels = fn.readers.file(file_root=str(tmp_path), name="Reader")
        return fn.resize(fn.decoders.image(data), size=(8, 8)), labels

    with Loader(define()) as loader, pytest.raises(RuntimeError, match="All samples of a batch were bad"):
        list(loader)
