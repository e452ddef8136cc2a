"""Programs as users write them, and checks of their end: exit code, and output on stderr."""

from __future__ import annotations

import faulthandler
import gc
import importlib.util
import json
import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tests.helpers.pages import ROOT

AT_A_TIME = 3
FRESH = (
    "an epoch", "an epoch, closed", "an exception in the loop", "FakeData and v2", "a folder, left by break", "a proxy",
    "a model that is compiled", "a parallel source, spawned", "replicas of a new interpreter", "workers that persist",
)  # fmt: skip
QUICK = ("an epoch", "Ctrl-C in the loop", "a function that never answers")
PATIENCE = 240  # seconds; a hanging program prints its threads' stacks

START = """
import os, signal, sys, threading
import numpy as np
import torch
from torchdali import Loader, fn, operator, pipeline_def
from torchdali.plugin.pytorch import DALIGenericIterator, LastBatchPolicy

def heavy(number):
    x = torch.full((3, 32, 32), float(number))
    for _ in range(60):
        x = x + torch.randn(3, 32, 32)
    return x

class Heavy(torch.utils.data.Dataset):
    def __len__(self):
        return 32
    def __getitem__(self, i):
        return heavy(i), i

def loader_of(data, workers=0, **options):
    @pipeline_def(batch_size=8, num_threads=2, device_id=None, **options)
    def pipe():
        first, second = fn.readers.dataset(dataset=data, random_shuffle=True, workers=workers, name="Reader")
        return first, second
    return Loader(pipe)

def pictures(count=12):
    import PIL.Image
    root = os.environ["FOLDER"]
    for i in range(count):
        os.makedirs(f"{root}/{i % 2}", exist_ok=True)
        PIL.Image.fromarray(np.full((40, 40, 3), 20 * i, np.uint8)).save(f"{root}/{i % 2}/{i:02}.jpg")
    return root

@operator(name="_heavy", pure=True)
def own(x, /):
    \"\"\"Work for a while.\"\"\"
    return x + heavy(1)[0, 0, 0] * 0

arrived = threading.Event()
def wait():
    import torchdali.threads
    torchdali.threads._MAX_WAIT = torchdali.threads._MIN_WAIT = 0.3
    arrived.set()
    threading.Event().wait()

@pipeline_def(batch_size=4, num_threads=2, device_id=None)
def of_source(source, parallel=False, **named):
    return fn.external_source(source, batch=False, parallel=parallel, **named) * 2
"""


@dataclass(frozen=True)
class Program:
    """A program, its exit code, a part of its output on stderr, and the package that it needs."""

    source: str
    code: int = 0
    says: str = ""
    needs: str = "torch"


class Ending(NamedTuple):
    """The exit code of a program, negative for a signal, and its output on stderr."""

    code: int
    stderr: str


def _data_set(source: str, **expected: Any) -> Program:
    return Program(f"loader = loader_of(Heavy())\n{textwrap.dedent(source)}", **expected)


PROGRAMS = {
    "an epoch": _data_set("assert sum(len(y) for _, y in loader) == 32"),
    "an epoch, closed": _data_set("assert sum(len(y) for _, y in loader) == 32\nloader.close()"),
    "an epoch, under with": _data_set("with loader:\n    list(loader)"),
    "three epochs": _data_set("for _ in range(3):\n    list(loader)"),
    "a loop left by break": _data_set("for batch in loader:\n    break"),
    "a loop left by break, closed": _data_set("for batch in loader:\n    break\nloader.close()"),
    "an exception in the loop": _data_set("for batch in loader:\n    1 / 0", code=1, says="ZeroDivisionError"),
    "an exception that is caught": _data_set("try:\n    for batch in loader:\n        1 / 0\nexcept ZeroDivisionError:\n    pass"),
    "sys.exit(3) in the loop": _data_set("for batch in loader:\n    sys.exit(3)", code=3),
    "Ctrl-C in the loop": _data_set(
        "for batch in loader:\n    signal.raise_signal(signal.SIGINT)", code=-signal.SIGINT, says="KeyboardInterrupt"),
    "an iterator in a global": _data_set("batches = iter(loader)\nnext(batches)"),
    "a loader in a function": Program("def train():\n    for batch in loader_of(Heavy()):\n        pass\ntrain()"),
    "a function left by break": Program("def train():\n    for batch in loader_of(Heavy()):\n        return\ntrain()"),
    "len and a batch": _data_set("len(loader)\nnext(iter(loader))"),
    "never used": Program("loader = loader_of(Heavy())"),
    "two loaders": _data_set("other = loader_of(Heavy())\nfor _ in zip(loader, other):\n    pass"),
    "an unlucky data set": Program("""
        class Unlucky(Heavy):
            def __getitem__(self, i):
                if i == 5:
                    raise KeyError("no such sample")
                return heavy(i), i
        list(loader_of(Unlucky()))""", code=1, says="no such sample"),
    "a light data set": Program("list(loader_of([(torch.tensor(i), i) for i in range(20)]))"),
    "a whole batch at a time": Program("""
        class Whole(Heavy):
            def __getitems__(self, records):
                return [self[i] for i in records]
        for batch in loader_of(Whole()):
            break"""),
    "worker processes": Program("loader = loader_of(Heavy(), workers=2)\nfor batch in loader:\n    break"),
    "no threads of the executor": Program("list(loader_of(Heavy(), exec_async=False, exec_pipelined=False))"),
    "debug mode": Program("""
        @pipeline_def(batch_size=8, num_threads=2, device_id=None, debug=True)
        def pipe():
            x, y = fn.readers.dataset(dataset=Heavy(), name="Reader")
            return x + 1, y
        running = pipe()
        running.run()"""),
    "checkpoints": _data_set("next(iter(loader))\nstate = loader.state_dict()\nother = loader_of(Heavy())\n"
                             "other.load_state_dict(state)\nlist(other)"),
    "FakeData and v2": Program("""
        from torchvision.datasets import FakeData
        from torchvision.transforms import v2
        steps = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.RandomErasing(p=1.0),
                            v2.Normalize([0.5] * 3, [0.5] * 3)])
        list(loader_of(FakeData(40, (3, 48, 48), transform=steps)))""", needs="torchvision"),
    "a folder": Program("loader = Loader.from_folder(pictures(), train=True, size=24, batch_size=4)\nlist(loader)"),
    "a folder, left by break": Program(
        "loader = Loader.from_folder(pictures(), train=True, size=24, batch_size=4)\nfor batch in loader:\n    break"),
    "a folder, one process": Program("""
        for batch in Loader.from_folder(pictures(), train=True, size=24, batch_size=4, num_processes=1):
            break"""),
    "DALI's iterator": Program("""
        @pipeline_def(batch_size=4, num_threads=2, device_id=None)
        def pipe():
            files, labels = fn.readers.file(file_root=pictures(), name="Reader")
            return own(fn.cast(fn.decoders.image(files), dtype=__import__("torchdali").types.FLOAT)), labels
        batches = DALIGenericIterator(pipe(), ["x", "y"], reader_name="Reader")
        for batch in batches:
            break"""),
    "an operator of one's own, in processes": Program("""
        @pipeline_def(batch_size=4, num_threads=2, device_id=None, num_processes=2)
        def pipe():
            files, labels = fn.readers.file(file_root=pictures(), name="Reader")
            return own(fn.decoders.image(files)), labels
        for batch in Loader(pipe):
            break"""),
    "a source": Program("pipe = of_source(lambda info: heavy(info.idx_in_epoch))\npipe.run()"),
    "a generator": Program("""
        def numbers():
            while True:
                yield heavy(1)
        pipe = of_source(numbers())
        pipe.run()"""),
    "a source, as a batch": Program("""
        @pipeline_def(batch_size=4, num_threads=2, device_id=None)
        def pipe():
            return fn.external_source(lambda: [heavy(i) for i in range(4)]) * 2
        running = pipe()
        running.run()"""),
    "a parallel source": Program("""
        def source(info):
            return np.full(3, info.idx_in_epoch)
        pipe = of_source(source, True, py_num_workers=2, py_start_method="fork")
        pipe.run()"""),
    "a parallel source, spawned": Program("""
        def source(info):
            return heavy(info.idx_in_epoch).numpy()
        if __name__ == "__main__":
            pipe = of_source(source, True, py_num_workers=2, py_start_method="spawn")
            pipe.run()"""),
    "replicas of a new interpreter": Program("""
        threading.Thread(target=threading.Event().wait, daemon=True).start()  # so that it is not forked
        loader = Loader.from_folder(pictures(), train=True, size=24, batch_size=4, num_processes=2)
        for batch in loader:
            break"""),
    "workers that persist": Program("""
        loader = torch.utils.data.DataLoader(loader_of(Heavy()), batch_size=None, num_workers=2, persistent_workers=True)
        for _ in range(2):
            list(loader)"""),
    "a function in Python": Program("""
        @pipeline_def(batch_size=4, num_threads=2, device_id=None)
        def pipe():
            x = fn.external_source(lambda info: heavy(0), batch=False)
            return fn.torch_python_function(x, function=lambda x: x + heavy(1)), fn.python_function(
                x, function=lambda x: x + heavy(2).numpy())
        running = pipe()
        running.run()"""),
    "a proxy": Program("""
        from torchdali.plugin.pytorch.experimental import proxy
        @pipeline_def(batch_size=4, num_threads=2, device_id=None)
        def pipe():
            return own(fn.external_source(name="x", no_copy=True))
        class Samples(Heavy):
            def __getitem__(self, i):
                return server.proxy(heavy(i).numpy()), i
        server = proxy.DALIServer(pipe())
        with server:
            for batch in proxy.DataLoader(server, Samples(), batch_size=4, num_workers=2):
                break"""),
    "dynamic mode": Program("""
        import torchdali.experimental.dynamic as ndd
        x = ndd.batch([heavy(i) for i in range(4)], layout="CHW")
        y = ndd.resize(x, size=(20, 20)) + 1
        y.evaluate()
        z = ndd.resize(x, size=(24, 24))"""),
    "dynamic mode, a reader": Program("""
        import torchdali.experimental.dynamic as ndd
        reader = ndd.readers.File(file_root=pictures())
        for files, labels in reader.next_epoch(batch_size=4):
            images = ndd.decoders.image(files)
            break"""),
    "a DataLoader around it": Program("""
        for batch in torch.utils.data.DataLoader(loader_of(Heavy()), batch_size=None, num_workers=2):
            break"""),
    "a fork at the end": _data_set("""
        list(loader)
        child = os.fork()
        if not child:
            os._exit(0)  # a forked process that has used threads of OpenMP hangs otherwise, in torch alone, too
        assert os.waitpid(child, 0)[1] == 0"""),
    "a fork in the loop": _data_set("""
        for batch in loader:
            child = os.fork()
            if not child:
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0"""),
    "a thread that goes on": _data_set("threading.Thread(target=lambda: list(loader)).start()"),
    "a model that is compiled": _data_set("""
        model = torch.compile(lambda x: (x * 2).sum(), backend="eager")
        for x, _ in loader:
            model(x)"""),
    "at the end, one more batch": _data_set("import atexit\natexit.register(lambda: next(iter(loader)))"),
    "remote files": Program("""
        import fsspec
        system = fsspec.filesystem("memory")
        for i in range(12):
            system.pipe_file(f"/data/{i}.bin", bytes(1000))
        @pipeline_def(batch_size=4, num_threads=2, device_id=None)
        def pipe():
            return fn.readers.file(files=[f"memory://data/{i}.bin" for i in range(12)], name="Reader")[0] + 1
        for batch in Loader(pipe):
            break""", needs="fsspec"),
    "a data set that never answers": Program("""
        class Silent(Heavy):
            def __getitem__(self, i):
                return wait() if threading.current_thread() is not threading.main_thread() else heavy(i), i
        loader = loader_of(Silent(), num_processes=1)
        loader.pipeline.schedule_run()
        arrived.wait()""", says="1 in File"),
    "a function that never answers": Program("""
        @pipeline_def(batch_size=4, num_threads=2, device_id=None)
        def pipe():
            x = fn.external_source(lambda info: heavy(0), batch=False)
            return fn.torch_python_function(x, function=lambda x: wait())
        running = pipe()
        running.build()
        running.schedule_run()
        arrived.wait()""", says="in wait"),
    "a data set that never answers, closed": Program("""
        class Silent(Heavy):
            def __getitem__(self, i):
                return wait() if threading.current_thread() is not threading.main_thread() else heavy(i), i
        loader = loader_of(Silent(), num_processes=1)
        loader.pipeline.schedule_run()
        arrived.wait()
        loader.close()""", says="1 in File"),
}  # fmt: skip


def written(name: str, folder: str) -> str:
    """Write a program into its own folder; return the file."""
    place = os.path.join(folder, str(list(PROGRAMS).index(name)))
    os.mkdir(place)
    file = os.path.join(place, "program.py")
    with open(file, "w", encoding="utf-8") as out:
        out.write(START + textwrap.dedent(PROGRAMS[name].source))
    return file


def environment(file: str) -> dict[str, str]:
    """Return a program's environment: two threads of torch, and no limit of processes."""
    own = {**os.environ, "FOLDER": os.path.dirname(file) + "/images", "OMP_NUM_THREADS": "2", "PYTHONPATH": str(ROOT)}
    own.pop("TORCHDALI_PROCESSES", None)
    return own


def run_fresh(name: str, folder: str) -> Ending:
    """Run a program in a new interpreter."""
    file = written(name, folder)
    done = subprocess.run(
        [sys.executable, file], capture_output=True, text=True, env=environment(file), stdin=subprocess.DEVNULL,
        timeout=PATIENCE, cwd=os.path.dirname(file),
    )  # fmt: skip
    return Ending(done.returncode, done.stderr)


def run_forked(names: list[str], folder: str) -> dict[str, Ending]:
    """Run programs in forks of a process that has imported all their modules."""
    done = subprocess.run(
        [sys.executable, "-m", __name__, folder, *names], capture_output=True, text=True, cwd=ROOT, timeout=PATIENCE,
        env=environment(os.path.join(folder, "program.py")), stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return {name: Ending(*ending) for name, ending in json.loads(done.stdout).items()}


def _begin(file: str) -> None:
    """Prepare a forked process for a program."""
    with open(f"{file}.stderr", "wb") as errors:
        os.dup2(errors.fileno(), 2)
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 1)
    os.environ.update(environment(file))
    os.chdir(os.path.dirname(file))
    faulthandler.dump_traceback_later(PATIENCE / 2, exit=True)


def _ending(file: str, status: int) -> Ending:
    return Ending(os.waitstatus_to_exitcode(status), Path(f"{file}.stderr").read_text())


if __name__ == "__main__":
    for module in ("torch", "torchvision.transforms.v2", "torchdali.experimental.dynamic", "torchdali.plugin.pytorch"):
        if importlib.util.find_spec(module.partition(".")[0]):
            importlib.import_module(module)
    gc.collect()
    gc.freeze()  # otherwise each process collects all modules at its end
    folder, *waiting = sys.argv[1:]
    program, running, endings = "", {}, {}
    while not program and (waiting or running):
        if waiting and len(running) < AT_A_TIME:
            name = waiting.pop(0)
            file = written(name, folder)
            child = os.fork()
            if child:
                running[child] = name, file
            else:
                program = file
        else:
            child, status = os.wait()
            name, file = running.pop(child)
            endings[name] = _ending(file, status)
    if program:  # this process is a fork: it exits as if it had only run the program
        _begin(program)
        exec(compile(Path(program).read_text(), program, "exec"), {"__name__": "__main__", "__file__": program})
    else:
        print(json.dumps(endings))
