# SPDX-License-Identifier: Apache-2.0
"""``stoker.cpp``: operators in C++, compiled when they are loaded (``stoker/op.h``)."""

from .frontends.compiled.extension import extension as extension
from .frontends.compiled.load import CompiledOperator as CompiledOperator
from .frontends.compiled.load import header_folder as header_folder
from .frontends.compiled.load import load as load
from .frontends.compiled.load import load_library as load_library
