#!/usr/bin/env python3
"""Writes nfc_cases.txt: text and its NFC form, in hexadecimal UTF-8, a pair a line.

    python3 make_nfc_cases.py

Every character that decomposes, decomposed and composed, then random strings
of characters that reorder and compose. Expected values: Python's unicodedata.
"""
import os
import random
import unicodedata as ud

rng = random.Random(15)
assigned = [c for c in range(0x110000) if ud.category(chr(c)) not in ("Cn", "Cs", "Co")]
decomposing = [c for c in assigned if ud.normalize("NFD", chr(c)) != chr(c) and not 0xAC00 <= c <= 0xD7A3]
marks = [c for c in assigned if ud.combining(chr(c))]
seconds = sorted({ord(ud.normalize("NFD", chr(c))[-1]) for c in decomposing})
jamo = list(range(0x10FF, 0x1115)) + list(range(0x1160, 0x1178)) + list(range(0x11A6, 0x11C4)) + list(range(0xAC00, 0xAC3A)) + [0xD788, 0xD7A3]
starters = [ord(c) for c in "aeiouAEIOUncszyw\u03b1\u03c9\u0915\u09c7\u0b47 x"]

texts = []
for code in decomposing:
    texts += [chr(code), ud.normalize("NFD", chr(code))]
for _ in range(1500):
    pools = rng.choice([[starters, marks], [starters, marks, decomposing, seconds], [jamo], [starters, seconds], [assigned, marks]])
    texts.append("".join(chr(rng.choice(rng.choice(pools))) for _ in range(rng.randint(1, 9))))
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "nfc_cases.txt")
with open(path, "w", encoding="ascii", newline="\n") as out:
    for text in dict.fromkeys(texts):
        out.write(text.encode().hex() + " " + ud.normalize("NFC", text).encode().hex() + "\n")
