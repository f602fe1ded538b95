"""What was it measured on? The processor, Python, and the versions of the libraries."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("maxmargin", "scikit-learn", "scikit-learn-intelex", "libsvm-official")
PACKAGES += ("numpy", "scipy", "numba")


def describe_machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "processor": name_processor(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": find_versions(),
    }


def name_processor() -> str:
    """As Linux names it, else as Python does."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = [line.split(":")[1].strip() for line in lines if "model name" in line]
    return named[0] if named else platform.processor() or platform.machine()


def find_versions() -> dict[str, str]:
    """Of the packages that are installed."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def name_machine(machine: dict[str, Any]) -> str:
    """One line."""
    return (
        f"{machine['cores']} cores ({machine['processor']}), Python {machine['python']}"
    )
