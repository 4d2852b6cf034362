"""The fast feature hashes other than XXH3, over a slice of a byte buffer.

Sources: xxHash specification (XXH64); Fowler, Noll and Vo; Appleby, MurmurHash3; Jenkins, lookup3
and one-at-a-time; Aumasson and Bernstein, SipHash, 2012; ISO 3309 (CRC-32);
erlang:phash2/2 (Jenkins' lookup2) of the Erlang/OTP runtime.
32-bit arithmetic is done in uint64 and masked, since Numba would widen a mixed product to float64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from neardup.kernels.bits import load32, load64
from neardup.kernels.features.xxh3 import seeded_secret, xxh3_64
from neardup.kernels.jit import inner, kernel
from neardup.kernels.splitmix import widened

if TYPE_CHECKING:
    from neardup.kernels.array_types import Bytes, Offsets, Uint64s

XXH3, XXH64, FNV1, FNV1A, FNV1A32, MURMUR3, MURMUR3_32 = 0, 1, 2, 3, 4, 5, 6
JENKINS, ONE_AT_A_TIME, SIPHASH, CRC32, PHASH2 = 7, 8, 9, 10, 11

SPREAD: Final = 16
"""Added to the code of a hash of 32 bits, it spreads the hash over 64."""

_M32: Final = np.uint64(0xFFFFFFFF)
_BYTE: Final = np.uint64(0xFF)
_ZERO: Final = np.uint64(0)

_P64_1: Final = np.uint64(0x9E3779B185EBCA87)
_P64_2: Final = np.uint64(0xC2B2AE3D27D4EB4F)
_P64_3: Final = np.uint64(0x165667B19E3779F9)
_P64_4: Final = np.uint64(0x85EBCA77C2B2AE63)
_P64_5: Final = np.uint64(0x27D4EB2F165667C5)

_FNV_BASIS: Final = np.uint64(0xCBF29CE484222325)
_FNV_PRIME: Final = np.uint64(0x100000001B3)
_FNV_BASIS_32: Final = np.uint64(0x811C9DC5)
_FNV_PRIME_32: Final = np.uint64(0x01000193)

_MURMUR_1: Final = np.uint64(0x87C37B91114253D5)
_MURMUR_2: Final = np.uint64(0x4CF5AD432745937F)
_MURMUR_MIX_1: Final = np.uint64(0xFF51AFD7ED558CCD)
_MURMUR_MIX_2: Final = np.uint64(0xC4CEB9FE1A85EC53)

_GOLDEN_32: Final = np.uint64(0x9E3779B9)
_PHASH2_BINARY: Final = np.uint64(0x08D12E65)


def _crc_table() -> Any:
    table = np.arange(256, dtype=np.uint64)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ 0xEDB88320, table >> 1).astype(np.uint64)
    return table


_CRC: Final = _crc_table()


@inner
def _rotl(x: np.uint64, count: int) -> Any:
    return (x << np.uint64(count)) | (x >> np.uint64(64 - count))


@inner
def _rotl32(x: np.uint64, count: int) -> Any:
    return ((x << np.uint64(count)) | (x >> np.uint64(32 - count))) & _M32


@inner
def _load_tail(data: Bytes, at: int, size: int) -> Any:
    """Read 0 to 8 bytes as a little-endian number."""
    value = _ZERO
    for i in range(size):
        value |= np.uint64(data[at + i]) << np.uint64(8 * i)
    return value


@inner
def _xxh64_round(acc: np.uint64, value: np.uint64) -> Any:
    return _rotl(acc + value * _P64_2, 31) * _P64_1


@inner
def xxh64(data: Bytes, at: int, size: int, seed: np.uint64) -> Any:
    """XXH64 of `size` bytes from index `at`; uint64."""
    end = at + size
    if size >= 32:
        a, b = seed + _P64_1 + _P64_2, seed + _P64_2
        c, d = seed, seed - _P64_1
        while at + 32 <= end:
            a = _xxh64_round(a, load64(data, at))
            b = _xxh64_round(b, load64(data, at + 8))
            c = _xxh64_round(c, load64(data, at + 16))
            d = _xxh64_round(d, load64(data, at + 24))
            at += 32
        h = _rotl(a, 1) + _rotl(b, 7) + _rotl(c, 12) + _rotl(d, 18)
        h = (h ^ _xxh64_round(_ZERO, a)) * _P64_1 + _P64_4
        h = (h ^ _xxh64_round(_ZERO, b)) * _P64_1 + _P64_4
        h = (h ^ _xxh64_round(_ZERO, c)) * _P64_1 + _P64_4
        h = (h ^ _xxh64_round(_ZERO, d)) * _P64_1 + _P64_4
    else:
        h = seed + _P64_5
    h += np.uint64(size)
    while at + 8 <= end:
        h = _rotl(h ^ _xxh64_round(_ZERO, load64(data, at)), 27) * _P64_1 + _P64_4
        at += 8
    if at + 4 <= end:
        h = _rotl(h ^ (load32(data, at) * _P64_1), 23) * _P64_2 + _P64_3
        at += 4
    while at < end:
        h = _rotl(h ^ (np.uint64(data[at]) * _P64_5), 11) * _P64_1
        at += 1
    h = (h ^ (h >> np.uint64(33))) * _P64_2
    h = (h ^ (h >> np.uint64(29))) * _P64_3
    return h ^ (h >> np.uint64(32))


@inner
def fnv1(data: Bytes, at: int, size: int) -> Any:
    """FNV-1, 64 bits: multiply, then xor; uint64."""
    h = _FNV_BASIS
    for i in range(at, at + size):
        h = (h * _FNV_PRIME) ^ np.uint64(data[i])
    return h


@inner
def fnv1a(data: Bytes, at: int, size: int) -> Any:
    """FNV-1a, 64 bits: xor, then multiply; uint64."""
    h = _FNV_BASIS
    for i in range(at, at + size):
        h = (h ^ np.uint64(data[i])) * _FNV_PRIME
    return h


@inner
def fnv1a32(data: Bytes, at: int, size: int) -> Any:
    """FNV-1a, 32 bits, in a uint64."""
    h = _FNV_BASIS_32
    for i in range(at, at + size):
        h = ((h ^ np.uint64(data[i])) * _FNV_PRIME_32) & _M32
    return h


@inner
def _murmur_mix(k: np.uint64) -> Any:
    k = (k ^ (k >> np.uint64(33))) * _MURMUR_MIX_1
    k = (k ^ (k >> np.uint64(33))) * _MURMUR_MIX_2
    return k ^ (k >> np.uint64(33))


@inner
def murmur3(data: Bytes, at: int, size: int, seed: np.uint64) -> Any:
    """First 64 bits (h1) of MurmurHash3 x64 128 with the low 32 bits of the seed; uint64."""
    a = seed & _M32
    b = a
    end = at + size
    while at + 16 <= end:
        a ^= _rotl(load64(data, at) * _MURMUR_1, 31) * _MURMUR_2
        a = (_rotl(a, 27) + b) * np.uint64(5) + np.uint64(0x52DCE729)
        b ^= _rotl(load64(data, at + 8) * _MURMUR_2, 33) * _MURMUR_1
        b = (_rotl(b, 31) + a) * np.uint64(5) + np.uint64(0x38495AB5)
        at += 16
    b ^= _rotl(_load_tail(data, at + 8, max(0, end - at - 8)) * _MURMUR_2, 33) * _MURMUR_1
    a ^= _rotl(_load_tail(data, at, min(8, end - at)) * _MURMUR_1, 31) * _MURMUR_2
    a ^= np.uint64(size)
    b ^= np.uint64(size)
    a += b
    b += a
    return _murmur_mix(a) + _murmur_mix(b)


@inner
def murmur3_32(data: Bytes, at: int, size: int, seed: np.uint64) -> Any:
    """MurmurHash3 x86 32 with the low 32 bits of the seed, in a uint64."""
    h = seed & _M32
    end = at + size
    while at + 4 <= end:
        k = (load32(data, at) * np.uint64(0xCC9E2D51)) & _M32
        h ^= (_rotl32(k, 15) * np.uint64(0x1B873593)) & _M32
        h = (_rotl32(h, 13) * np.uint64(5) + np.uint64(0xE6546B64)) & _M32
        at += 4
    k = (_load_tail(data, at, end - at) * np.uint64(0xCC9E2D51)) & _M32
    h ^= (_rotl32(k, 15) * np.uint64(0x1B873593)) & _M32
    h ^= np.uint64(size)
    h = ((h ^ (h >> np.uint64(16))) * np.uint64(0x85EBCA6B)) & _M32
    h = ((h ^ (h >> np.uint64(13))) * np.uint64(0xC2B2AE35)) & _M32
    return h ^ (h >> np.uint64(16))


@inner
def _jenkins_mix(a: np.uint64, b: np.uint64, c: np.uint64) -> Any:
    a = ((a - c) & _M32) ^ _rotl32(c, 4)
    c = (c + b) & _M32
    b = ((b - a) & _M32) ^ _rotl32(a, 6)
    a = (a + c) & _M32
    c = ((c - b) & _M32) ^ _rotl32(b, 8)
    b = (b + a) & _M32
    a = ((a - c) & _M32) ^ _rotl32(c, 16)
    c = (c + b) & _M32
    b = ((b - a) & _M32) ^ _rotl32(a, 19)
    a = (a + c) & _M32
    c = ((c - b) & _M32) ^ _rotl32(b, 4)
    b = (b + a) & _M32
    return a, b, c


@inner
def jenkins(data: Bytes, at: int, size: int, seed: np.uint64) -> Any:
    """lookup3's hashlittle2 from pc = seed >> 32 and pb = low seed: pc << 32 | pb; uint64."""
    a = (np.uint64(0xDEADBEEF) + np.uint64(size) + (seed >> np.uint64(32))) & _M32
    b = a
    c = (a + seed) & _M32
    end = at + size
    while end - at > 12:
        a = (a + load32(data, at)) & _M32
        b = (b + load32(data, at + 4)) & _M32
        c = (c + load32(data, at + 8)) & _M32
        a, b, c = _jenkins_mix(a, b, c)
        at += 12
    rest = end - at
    if rest > 0:
        a = (a + _load_tail(data, at, min(4, rest))) & _M32
        b = (b + _load_tail(data, at + 4, min(4, max(0, rest - 4)))) & _M32
        c = (c + _load_tail(data, at + 8, max(0, rest - 8))) & _M32
        c = ((c ^ b) - _rotl32(b, 14)) & _M32
        a = ((a ^ c) - _rotl32(c, 11)) & _M32
        b = ((b ^ a) - _rotl32(a, 25)) & _M32
        c = ((c ^ b) - _rotl32(b, 16)) & _M32
        a = ((a ^ c) - _rotl32(c, 4)) & _M32
        b = ((b ^ a) - _rotl32(a, 14)) & _M32
        c = ((c ^ b) - _rotl32(b, 24)) & _M32
    return (c << np.uint64(32)) | b


@inner
def one_at_a_time(data: Bytes, at: int, size: int, seed: np.uint64) -> Any:
    """Jenkins' one-at-a-time from the low 32 bits of the seed; 32 bits in a uint64."""
    h = seed & _M32
    for i in range(at, at + size):
        h = (h + np.uint64(data[i])) & _M32
        h = (h + (h << np.uint64(10))) & _M32
        h ^= h >> np.uint64(6)
    h = (h + (h << np.uint64(3))) & _M32
    h ^= h >> np.uint64(11)
    return (h + (h << np.uint64(15))) & _M32


@inner
def _sip_round(a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64) -> Any:
    a += b
    b = _rotl(b, 13) ^ a
    a = _rotl(a, 32)
    c += d
    d = _rotl(d, 16) ^ c
    a += d
    d = _rotl(d, 21) ^ a
    c += b
    b = _rotl(b, 17) ^ c
    c = _rotl(c, 32)
    return a, b, c, d


@inner
def siphash24(data: Bytes, at: int, size: int, k0: np.uint64, k1: np.uint64) -> Any:
    """SipHash-2-4 with the key (k0, k1); uint64."""
    a = k0 ^ np.uint64(0x736F6D6570736575)
    b = k1 ^ np.uint64(0x646F72616E646F6D)
    c = k0 ^ np.uint64(0x6C7967656E657261)
    d = k1 ^ np.uint64(0x7465646279746573)
    for block in range(size // 8 + 1):
        if block < size // 8:
            word = load64(data, at + 8 * block)
        else:
            word = _load_tail(data, at + 8 * block, size % 8)
            word |= (np.uint64(size) & _BYTE) << np.uint64(56)
        d ^= word
        a, b, c, d = _sip_round(a, b, c, d)
        a, b, c, d = _sip_round(a, b, c, d)
        a ^= word
    c ^= _BYTE
    for _ in range(4):
        a, b, c, d = _sip_round(a, b, c, d)
    return a ^ b ^ c ^ d


@inner
def crc32(data: Bytes, at: int, size: int) -> Any:
    """CRC-32 of ISO 3309, as in zlib; 32 bits in a uint64."""
    h = _M32
    for i in range(at, at + size):
        h = _CRC[(h ^ np.uint64(data[i])) & _BYTE] ^ (h >> np.uint64(8))
    return h ^ _M32


@inner
def _lookup2_mix(a: np.uint64, b: np.uint64, c: np.uint64) -> Any:
    a = ((a - b - c) & _M32) ^ (c >> np.uint64(13))
    b = ((b - c - a) & _M32) ^ ((a << np.uint64(8)) & _M32)
    c = ((c - a - b) & _M32) ^ (b >> np.uint64(13))
    a = ((a - b - c) & _M32) ^ (c >> np.uint64(12))
    b = ((b - c - a) & _M32) ^ ((a << np.uint64(16)) & _M32)
    c = ((c - a - b) & _M32) ^ (b >> np.uint64(5))
    a = ((a - b - c) & _M32) ^ (c >> np.uint64(3))
    b = ((b - c - a) & _M32) ^ ((a << np.uint64(10)) & _M32)
    c = ((c - a - b) & _M32) ^ (b >> np.uint64(15))
    return a, b, c


@inner
def phash2(data: Bytes, at: int, size: int) -> Any:
    """erlang:phash2(Binary, 1 bsl 32): 32 bits in a uint64."""
    if size == 0:
        return _PHASH2_BINARY
    a, b, c = _GOLDEN_32, _GOLDEN_32, _PHASH2_BINARY
    end = at + size
    while end - at >= 12:
        a = (a + load32(data, at)) & _M32
        b = (b + load32(data, at + 4)) & _M32
        c = (c + load32(data, at + 8)) & _M32
        a, b, c = _lookup2_mix(a, b, c)
        at += 12
    rest = end - at
    a = (a + _load_tail(data, at, min(4, rest))) & _M32
    b = (b + _load_tail(data, at + 4, min(4, max(0, rest - 4)))) & _M32
    tail = _load_tail(data, at + 8, max(0, rest - 8)) << np.uint64(8)
    a, b, c = _lookup2_mix(a, b, (c + tail + np.uint64(size)) & _M32)
    return c


@inner
def spread32(h: np.uint64) -> Any:
    """Spread a 32-bit hash over 64 bits: splitmix64's first output for the state `h`; uint64."""
    return widened(h, np.int64(1))


@inner
def hash_bytes(
    kind: int, data: Bytes, at: int, size: int, seed: np.uint64, secret: Bytes, lanes: Uint64s
) -> Any:  # fmt: skip
    """Hash `size` bytes of the uint8 array `data` from index `at` on; uint64, or 32 bits in one.

    All kinds are one function, since each function that passes a dozen hashes on is compiled with
    all of them in it.

    Args:
        kind: XXH3 to PHASH2, to which SPREAD may be added.
        data: uint8, may be read-only.
        at: First byte.
        size: Bytes, 0 or more.
        seed: uint64; FNV, CRC-32 and phash2 take none, Murmur and one-at-a-time its low 32 bits,
            SipHash (seed, 0) as the key.
        secret: seeded_secret(seed), for XXH3.
        lanes: uint64 (8,), scratch, for XXH3.
    """
    code = kind & (SPREAD - 1)
    if code == XXH3:
        h = xxh3_64(data, at, size, seed, secret, lanes)
    elif code == XXH64:
        h = xxh64(data, at, size, seed)
    elif code == FNV1:
        h = fnv1(data, at, size)
    elif code == FNV1A:
        h = fnv1a(data, at, size)
    elif code == FNV1A32:
        h = fnv1a32(data, at, size)
    elif code == MURMUR3:
        h = murmur3(data, at, size, seed)
    elif code == MURMUR3_32:
        h = murmur3_32(data, at, size, seed)
    elif code == JENKINS:
        h = jenkins(data, at, size, seed)
    elif code == ONE_AT_A_TIME:
        h = one_at_a_time(data, at, size, seed)
    elif code == SIPHASH:
        h = siphash24(data, at, size, seed, _ZERO)
    elif code == CRC32:
        h = crc32(data, at, size)
    else:
        h = phash2(data, at, size)
    return spread32(h) if kind & SPREAD else h


@kernel
def hash_slices(kind: int, data: Bytes, offsets: Offsets, seed: np.uint64) -> Any:
    """Hash data[offsets[i]:offsets[i + 1]] for each i; uint64 (n,). O(bytes).

    Args:
        kind: XXH3 to PHASH2.
        data: uint8, may be read-only.
        offsets: int64 (n + 1,), may be read-only.
        seed: uint64.
    """
    secret, lanes = seeded_secret(seed), np.empty(8, np.uint64)
    out = np.empty(offsets.size - 1, np.uint64)
    for i in range(out.size):
        at = offsets[i]
        out[i] = hash_bytes(kind, data, at, offsets[i + 1] - at, seed, secret, lanes)
    return out


@kernel
def siphash_slices(data: Any, offsets: Offsets, k0: Any, k1: Any) -> Any:
    """SipHash-2-4 of data[offsets[i]:offsets[i + 1]] with the key (k0, k1); uint64 (n,)."""
    out = np.empty(offsets.size - 1, np.uint64)
    for i in range(out.size):
        at = offsets[i]
        out[i] = siphash24(data, at, offsets[i + 1] - at, k0, k1)
    return out
