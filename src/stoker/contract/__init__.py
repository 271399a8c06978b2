# SPDX-License-Identifier: Apache-2.0
"""What things are: types, expressions, operators, readers, batches, errors. It runs nothing."""
