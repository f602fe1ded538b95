"""Which machine code does a wheel carry? That of the folder MAXMARGIN_MACHINE_CODE.

`make wheel` fills such a folder (tools/machine_code.py). Without the variable the wheel
has sources only, for any processor and Python.
"""

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class MachineCode(BuildHookInterface):
    """Add the folder to the package, and name Python and platform in the tag."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        folder = os.environ.get("MAXMARGIN_MACHINE_CODE")
        if not folder:
            return
        build_data["force_include"][folder] = "maxmargin/machine_code"
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
