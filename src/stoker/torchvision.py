# SPDX-License-Identifier: Apache-2.0
"""``stoker.torchvision``: a torchvision script runs on Stoker, unchanged, with the same samples.

    import stoker.torchvision
    stoker.torchvision.enable()

or, without a line: ``python -m stoker.torchvision train.py arguments``.
"""

from .frontends.torchvision import disable as disable
from .frontends.torchvision import enable as enable
from .frontends.torchvision import enabled as enabled
from .frontends.torchvision import is_enabled as is_enabled
from .frontends.torchvision import report as report

if __name__ == "__main__":
    from .frontends.torchvision.hooks.script import run

    run()
