"""Small files as a cppjieba program has them in its `dict`: contents by name."""

from __future__ import annotations

__all__ = ["CONTENTS"]

CONTENTS = {
    "jieba.dict.utf8": (
        "我 100 r\n来 30 v\n来到 40 v\n北京 80 ns\n清华 20 nz\n清华大学 30 nt\n大学 60 n\n"
        "华大 9 nz\n大 50 a\n学 20 n\nc++ 3 nz\nB超 3 n\nB 1 n\n的 200 u\n"
    ),
    "hmm_model.utf8": (
        "#start\n-0.26 -3.14e+100 -3.14e+100 -1.46\n#steps\n-3.14e+100 -0.51 -0.91 -3.14e+100\n"
        "-0.58 -3.14e+100 -3.14e+100 -0.80\n-3.14e+100 -0.33 -1.26 -3.14e+100\n"
        "-0.72 -3.14e+100 -3.14e+100 -0.66\n杭:-3.1,研:-4.2\n研:-3.0,厦:-3.3,州:-2.0\n"
        "大:-5.0,州:-9.0\n我:-2.0,研:-7.5,了:-1.0\n"
    ),
    "idf.utf8": "北京 4.5\n清华大学 7.25\nc++ 9\n大厦 6.0\n杭研 8.5\nThe 2\n",
    "stop_words.utf8": "the\n来到\n来\n",
}
