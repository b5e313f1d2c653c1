"""Whether the machine is idle: what others do counts, and what this process does not."""

from __future__ import annotations

import pytest

from ragvault.service import idle
from ragvault.service.idle import Machine


class Readings:
    """A machine of two cores whose readings are set by hand."""

    def __init__(self) -> None:
        self.load, self.battery, self.own, self.now = 0.0, False, 0.0, 100.0
        self.looked = 0
        self.machine = Machine(
            lambda: self.load,
            self.on_battery,
            cores=2,
            own_seconds=lambda: self.own,
            clock=lambda: self.now,
        )

    def on_battery(self) -> bool:
        self.looked += 1
        return self.battery

    def work(self, seconds: float, cores: float) -> None:
        for _ in range(int(seconds)):
            self.now += 1
            self.own += cores
            self.machine.busy()


@pytest.mark.parametrize(("load", "busy"), [(0.0, False), (0.9, False), (1.1, True), (9.0, True)])
def test_a_machine_is_busy_when_others_use_half_of_its_processors(load, busy):
    readings = Readings()
    readings.load = load
    assert bool(readings.machine.busy()) == busy


def test_work_of_this_process_is_not_taken_for_that_of_others():
    readings = Readings()
    readings.work(300, cores=2)
    readings.load = 2.2
    assert readings.machine.busy() == ""
    readings.load = 3.2
    assert readings.machine.busy() == "other programs are busy"
    readings.work(300, cores=0)
    readings.load = 2.2
    assert readings.machine.busy() == "other programs are busy"


def test_a_machine_on_battery_is_not_idle_and_the_battery_is_seldom_looked_at():
    readings = Readings()
    readings.battery = True
    assert readings.machine.busy() == "running on battery"
    readings.battery = False
    readings.work(20, cores=0)
    assert (readings.machine.busy(), readings.looked) == ("running on battery", 1)
    readings.work(20, cores=0)
    assert (readings.machine.busy(), readings.looked) == ("", 2)


@pytest.mark.parametrize(
    ("supplies", "expected"),
    [
        ({}, False),
        ({"BAT0": {"type": "Battery", "status": "Discharging"}}, True),
        ({"BAT0": {"type": "Battery", "status": "Charging"}, "AC": {"type": "Mains"}}, False),
        ({"mouse": {"type": "Battery", "status": "Discharging", "scope": "Device"}}, False),
        ({"odd": {"type": "Battery"}}, False),
    ],
)
def test_only_the_battery_of_the_machine_counts_and_only_in_use(
    tmp_path, monkeypatch, supplies, expected
):
    monkeypatch.setattr(idle, "POWER", tmp_path)
    monkeypatch.setattr(idle.sys, "platform", "linux")
    for name, values in supplies.items():
        (tmp_path / name).mkdir()
        for key, value in values.items():
            (tmp_path / name / key).write_text(f"{value}\n")
    assert idle.on_battery() == expected


def test_the_readings_of_this_machine_can_be_taken():
    assert idle.load_average() >= 0
    assert idle.on_battery() in (True, False)
    assert Machine().busy() in ("", "other programs are busy", "running on battery")
