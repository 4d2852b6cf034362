"""The public path of presets; see `neardup.fingerprinting.preset_recipes`."""

from __future__ import annotations

from neardup.fingerprinting.libraries.table import PRESETS
from neardup.fingerprinting.preset_recipes import fingerprint_features, preset, presets

__all__ = ["PRESETS", "fingerprint_features", "preset", "presets"]
