"""Code that runs single modules of large packages, without what they import and do not need.

text-dedup and data-juicer import data-set, click and pydantic stacks; their fingerprints need none
of that. Each module is loaded from its file, with stand-ins for the other ones.
"""

from __future__ import annotations

from typing import Final

__all__ = ["DATA_JUICER", "TEXT_DEDUP_0_4_0", "TEXT_DEDUP_0_4_1"]

_LOAD: Final = """
import importlib.util, re, types
from pathlib import Path
from unittest.mock import MagicMock
class Stand(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return MagicMock()
def stand(*names):
    for name in names:
        sys.modules[name] = Stand(name)
    return sys.modules[names[-1]]
def load(name, path):
    home = next(Path(x) for x in sys.path if (Path(x) / path).is_file())
    spec = importlib.util.spec_from_file_location(name, home / path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
"""

TEXT_DEDUP_0_4_0: Final = f"""{_LOAD}
tokenization = load("tokenization", "text_dedup/utils/tokenization.py")
hashfunc = load("hashfunc", "text_dedup/utils/hashfunc.py")
utils = stand("click", "datasets", "tqdm", "text_dedup", "text_dedup.utils")
utils.ngrams, utils.INDEX_COLUMN = tokenization.ngrams, "index"
utils.xxh3_64_digest = digest = hashfunc.xxh3_64_digest
module = load("module", "text_dedup/simhash.py")
def value(text):
    found = module.embed_func(text, 0, ngram=3, permutations=None, hash_func=digest)
    return int.from_bytes(found[module.SIGNATURE_COLUMN], "big")
values = [value(text) for text in rows]
"""

TEXT_DEDUP_0_4_1: Final = f"""{_LOAD}
stand("text_dedup", "text_dedup.config", "text_dedup.config.algorithms", "text_dedup.utils")
stand("text_dedup.config.algorithms.base").AlgorithmConfig = object
stand("pydantic").model_validator = lambda mode: lambda function: function
for name in ("hashfunc", "tokenization"):
    load(f"text_dedup.utils.{{name}}", f"text_dedup/utils/{{name}}.py")
module = load("module", "text_dedup/config/algorithms/simhash.py")
made = module.SimHashAlgorithmConfig()
made.seed, made.internal_index_column = 42, "index"
blank = module.bitarray("0")
made._perms = [types.SimpleNamespace(search_mask=blank, permute=lambda _: blank)]
embed = made.get_embed_func()
values = [int.from_bytes(embed([text], [0])["__val__"][0], "big") for text in rows]
"""

DATA_JUICER: Final = f"""{_LOAD}
import simhash
class Deduplicator:
    text_key = "text"
class Operators:
    def register_module(name):
        return lambda kind: kind
stand("loguru", "pydantic", "data_juicer", "data_juicer.utils", "data_juicer.ops")
stand("data_juicer.utils.constant").HashKeys = types.SimpleNamespace(simhash="simhash")
stand("data_juicer.utils.lazy_loader").LazyLoader = lambda *_: simhash
base = stand("data_juicer.ops.deduplicator", "data_juicer.ops.common", "data_juicer.ops.base_op")
base.Deduplicator, base.OPERATORS = Deduplicator, Operators
helper = stand("data_juicer.ops.common.helper_func")
home = next(Path(x) for x in sys.path if (Path(x) / "data_juicer").is_dir())
source = (home / "data_juicer/ops/common/helper_func.py").read_text()
found = re.search(r"^def split_on_whitespace.*?(?=^def )", source, re.M | re.S)[0]
exec(found, {{"re": re}}, vars(helper))
file = "data_juicer/ops/deduplicator/document_simhash_deduplicator.py"
module = load("data_juicer.ops.deduplicator.document_simhash_deduplicator", file)
Deduplicator.__init__ = lambda self: None
made = module.DocumentSimhashDeduplicator(tokenization="TOKENIZATION")
values = [int(made.compute_hash({{"text": text}})["simhash"]) for text in rows]
"""
