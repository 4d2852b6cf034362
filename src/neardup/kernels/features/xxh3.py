"""XXH3, 64 bits, seeded: the feature hash.

Source: the XXH3 section of the xxHash specification and reference implementation (Yann Collet).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.kernels.bits import load32, load64, multiply_fold
from neardup.kernels.features.token_arguments import Hasher
from neardup.kernels.jit import inner, kernel, making

if TYPE_CHECKING:
    from neardup.kernels.array_types import Bytes, Hashes, Offsets, Uint64s

_SECRET_HEX: Final = """
b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221
b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8
a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb
170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e
"""
_SECRET_BYTES: Final = bytes.fromhex(_SECRET_HEX)
_SECRET: Final = np.frombuffer(_SECRET_BYTES, np.uint8)

# The secret as the short inputs read it: 64-bit words at every multiple of 8 and of 8 plus 3.
_EVEN: Final = tuple(np.uint64(v) for v in struct.unpack_from("<24Q", _SECRET_BYTES, 0))
_SHORT_FLIP: Final = np.uint64(
    int.from_bytes(_SECRET_BYTES[0:4], "little") ^ int.from_bytes(_SECRET_BYTES[4:8], "little")
)
_EMPTY_FLIP: Final = _EVEN[7] ^ _EVEN[8]
_FLIP_4_8: Final = _EVEN[1] ^ _EVEN[2]
_FLIP_9_16_LOW: Final = _EVEN[3] ^ _EVEN[4]
_FLIP_9_16_HIGH: Final = _EVEN[5] ^ _EVEN[6]

_P32_1: Final = np.uint64(0x9E3779B1)
_P32_2: Final = np.uint64(0x85EBCA77)
_P32_3: Final = np.uint64(0xC2B2AE3D)
_P64_1: Final = np.uint64(0x9E3779B185EBCA87)
_P64_2: Final = np.uint64(0xC2B2AE3D27D4EB4F)
_P64_3: Final = np.uint64(0x165667B19E3779F9)
_P64_4: Final = np.uint64(0x85EBCA77C2B2AE63)
_P64_5: Final = np.uint64(0x27D4EB2F165667C5)
_MX1: Final = np.uint64(0x165667919E3779F9)
_MX2: Final = np.uint64(0x9FB21C651E98DF25)
_LOW32: Final = np.uint64(0xFFFFFFFF)
_U8, _U16, _U24, _U32 = np.uint64(8), np.uint64(16), np.uint64(24), np.uint64(32)

_BATCH: Final = 256
_SHORT_AT, _MIDDLE_AT, _OTHERS_AT = (np.uint64(8 + i * _BATCH) for i in range(3))
SCRATCH: Final = 8 + 3 * _BATCH
"""Words of scratch of `xxh3_runs`; `xxh3_64` needs the first 8 of them."""

_STRIPE: Final = 64
_BLOCK: Final = 1024


@inner
def _avalanche64(h: np.uint64) -> Any:
    h = (h ^ (h >> np.uint64(33))) * _P64_2
    h = (h ^ (h >> np.uint64(29))) * _P64_3
    return h ^ (h >> _U32)


@inner
def _avalanche(h: np.uint64) -> Any:
    h = (h ^ (h >> np.uint64(37))) * _MX1
    return h ^ (h >> _U32)


@inner
def _rotl(x: np.uint64, by: np.uint64) -> Any:
    return (x << by) | (x >> (np.uint64(64) - by))


@inner
def _swap64(x: np.uint64) -> Any:
    x = ((x & np.uint64(0x00FF00FF00FF00FF)) << _U8) | ((x >> _U8) & np.uint64(0x00FF00FF00FF00FF))
    x = ((x & np.uint64(0x0000FFFF0000FFFF)) << _U16) | (
        (x >> _U16) & np.uint64(0x0000FFFF0000FFFF)
    )
    return (x << _U32) | (x >> _U32)


@inner
def _mix16(data: Bytes, at: int, low: np.uint64, high: np.uint64, seed: np.uint64) -> Any:
    return multiply_fold(load64(data, at) ^ (low + seed), load64(data, at + 8) ^ (high - seed))


@inner
def _from9_to16(data: Bytes, at: int, size: int, seed: np.uint64) -> Any:
    low = load64(data, at) ^ (_FLIP_9_16_LOW + seed)
    high = load64(data, at + size - 8) ^ (_FLIP_9_16_HIGH - seed)
    return _avalanche(np.uint64(size) + _swap64(low) + high + multiply_fold(low, high))


@inner
def _from17_to32(data: Bytes, at: int, size: int, seed: np.uint64) -> Any:
    acc = np.uint64(size) * _P64_1 + _mix16(data, at, _EVEN[0], _EVEN[1], seed)
    return _avalanche(acc + _mix16(data, at + size - 16, _EVEN[2], _EVEN[3], seed))


@inner
def _upto16(data: Bytes, at: int, size: int, seed: np.uint64) -> Any:
    if size > 8:
        return _from9_to16(data, at, size, seed)
    length = np.uint64(size)
    if size >= 4:
        flip = seed ^ ((_swap64(seed & _LOW32) >> _U32) << _U32)
        h = load32(data, at + size - 4) + (load32(data, at) << _U32)
        h ^= _FLIP_4_8 - flip
        h ^= _rotl(h, np.uint64(49)) ^ _rotl(h, _U24)
        h *= _MX2
        h ^= (h >> np.uint64(35)) + length
        h *= _MX2
        return h ^ (h >> np.uint64(28))
    if size > 0:
        first, middle = np.uint64(data[at]), np.uint64(data[at + (size >> 1)])
        last = np.uint64(data[at + size - 1])
        combined = (first << _U16) | (middle << _U24) | last | (length << _U8)
        return _avalanche64(combined ^ (_SHORT_FLIP + seed))
    return _avalanche64(seed ^ _EMPTY_FLIP)


@inner
def _upto128(data: Bytes, at: int, size: int, seed: np.uint64) -> Any:
    end = at + size
    acc = np.uint64(size) * _P64_1
    if size > 32:
        if size > 64:
            if size > 96:
                acc += _mix16(data, at + 48, _EVEN[12], _EVEN[13], seed)
                acc += _mix16(data, end - 64, _EVEN[14], _EVEN[15], seed)
            acc += _mix16(data, at + 32, _EVEN[8], _EVEN[9], seed)
            acc += _mix16(data, end - 48, _EVEN[10], _EVEN[11], seed)
        acc += _mix16(data, at + 16, _EVEN[4], _EVEN[5], seed)
        acc += _mix16(data, end - 32, _EVEN[6], _EVEN[7], seed)
    acc += _mix16(data, at, _EVEN[0], _EVEN[1], seed)
    acc += _mix16(data, end - 16, _EVEN[2], _EVEN[3], seed)
    return _avalanche(acc)


@inner
def _mix16_at(data: Bytes, at: int, offset: int, seed: np.uint64) -> Any:
    return _mix16(data, at, load64(_SECRET, offset), load64(_SECRET, offset + 8), seed)


@inner
def _upto240(data: Bytes, at: int, size: int, seed: np.uint64) -> Any:
    acc = np.uint64(size) * _P64_1
    for i in range(8):
        acc += _mix16_at(data, at + 16 * i, 16 * i, seed)
    acc = _avalanche(acc)
    for i in range(8, size // 16):
        acc += _mix16_at(data, at + 16 * i, 16 * (i - 8) + 3, seed)
    acc += _mix16_at(data, at + size - 16, np.int64(119), seed)
    return _avalanche(acc)


@inner
def _accumulate(acc: Uint64s, data: Bytes, at: int, secret: Bytes, offset: int) -> None:
    for i in range(8):
        value = load64(data, at + 8 * i)
        key = value ^ load64(secret, offset + 8 * i)
        acc[i ^ 1] += value
        acc[i] += (key & _LOW32) * (key >> _U32)


@kernel
def seeded_secret(seed: np.uint64) -> Any:
    """Derive the secret that inputs beyond 240 bytes use with this uint64 seed; uint8 (192,)."""
    secret = np.empty(192, np.uint8)
    for i in range(24):
        word = load64(_SECRET, 8 * i)
        word = word - seed if i & 1 else word + seed
        for byte in range(8):
            secret[8 * i + byte] = (word >> np.uint64(8 * byte)) & np.uint64(0xFF)
    return secret


@making
def hasher_of(seed: np.uint64) -> Hasher:
    """Make the Hasher of this uint64 seed."""
    return Hasher(seed, seeded_secret(seed), np.empty(SCRATCH, np.uint64))


@inner
def _long(data: Bytes, at: int, size: int, secret: Bytes, acc: Uint64s) -> Any:
    acc[0], acc[1], acc[2], acc[3] = _P32_3, _P64_1, _P64_2, _P64_3
    acc[4], acc[5], acc[6], acc[7] = _P64_4, _P32_2, _P64_5, _P32_1
    blocks = (size - 1) // _BLOCK
    for block in range(blocks):
        start = at + block * _BLOCK
        for stripe in range(16):
            _accumulate(acc, data, start + stripe * _STRIPE, secret, 8 * stripe)
        for i in range(8):
            acc[i] ^= acc[i] >> np.uint64(47)
            acc[i] ^= load64(secret, 128 + 8 * i)
            acc[i] *= _P32_1
    rest = at + blocks * _BLOCK
    for stripe in range((size - 1 - blocks * _BLOCK) // _STRIPE):
        _accumulate(acc, data, rest + stripe * _STRIPE, secret, 8 * stripe)
    _accumulate(acc, data, at + size - _STRIPE, secret, np.int64(121))
    h = np.uint64(size) * _P64_1
    for i in range(4):
        low = acc[2 * i] ^ load64(secret, 11 + 16 * i)
        h += multiply_fold(low, acc[2 * i + 1] ^ load64(secret, 19 + 16 * i))
    return _avalanche(h)


@inner
def xxh3_64(data: Bytes, at: int, size: int, seed: np.uint64, secret: Bytes, lanes: Uint64s) -> Any:
    """Hash `size` bytes of the uint8 array `data` from index `at` on; uint64.

    Args:
        data: uint8, may be read-only.
        at: First byte.
        size: Bytes, 0 or more.
        seed: uint64.
        secret: seeded_secret(seed).
        lanes: uint64 (8,), scratch.
    """
    if size <= 16:
        return _upto16(data, at, size, seed)
    if size <= 128:
        return _upto128(data, at, size, seed)
    if size <= 240:
        return _upto240(data, at, size, seed)
    return _long(data, at, size, secret, lanes)


@inner
def _sort_by_size(
    starts: Offsets, first: int, count: int, wide: np.uint64, gap: int, scratch: Uint64s
) -> tuple[Any, Any, Any]:
    """List the runs of 9 to 16 bytes, of 17 to 32 and the others; returns where each list ends."""
    short, middle, others = _SHORT_AT, _MIDDLE_AT, _OTHERS_AT
    for j in range(count):
        i = np.uint64(first + j)
        size = starts[i + wide] - starts[i] - gap
        scratch[short] = scratch[middle] = scratch[others] = i
        is_short, is_middle = np.uint64(size - 9) < _U8, np.uint64(size - 17) < _U16
        short += np.uint64(is_short)
        middle += np.uint64(is_middle)
        others += np.uint64(not (is_short or is_middle))
    return short, middle, others


@inner
def xxh3_runs(
    data: Bytes, starts: Offsets, first: int, last: int, width: int, gap: int, hasher: Hasher,
    hashes: Hashes,
) -> None:  # fmt: skip
    """Write the hash of data[starts[i] : starts[i + width] - gap] to hashes[i], first <= i < last.

    Runs are hashed in the order of their size class: half of all shingles are longer than 16 bytes,
    and a branch that cannot be predicted takes longer than the hash.

    Args:
        data: uint8, may be read-only.
        starts: int64 (last + width,), where tokens begin.
        first: The first run.
        last: Behind the last run.
        width: Tokens a run.
        gap: Bytes between two tokens.
        hasher: Hasher.
        hashes: uint64 (last,), written.
    """
    seed, scratch = hasher.seed, hasher.scratch
    # Indices are unsigned: Numba then compiles no rule for negative ones.
    wide = np.uint64(width)
    for begin in range(first, last, _BATCH):
        count = min(last - begin, _BATCH)
        short, middle, others = _sort_by_size(starts, begin, count, wide, gap, scratch)
        for j in range(_SHORT_AT, short):
            i = scratch[j]
            size = starts[i + wide] - starts[i] - gap
            hashes[i] = _from9_to16(data, starts[i], size, seed)
        for j in range(_MIDDLE_AT, middle):
            i = scratch[j]
            size = starts[i + wide] - starts[i] - gap
            hashes[i] = _from17_to32(data, starts[i], size, seed)
        for j in range(_OTHERS_AT, others):
            i = scratch[j]
            size = starts[i + wide] - starts[i] - gap
            hashes[i] = xxh3_64(data, starts[i], size, seed, hasher.secret, scratch)
