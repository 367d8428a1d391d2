#!/usr/bin/env python3
"""Writes texts.jsonl and special_texts.jsonl: the texts tokenizers are compared on.

    python3 make_texts.py            (seeded: the same files every time)

One JSON string a line. The words, snippets and rules are this project's own.
special_texts.jsonl holds texts with the spellings of control tokens in them.
"""
import json
import os
import random
import unicodedata

rng = random.Random(20240229)
HERE = os.path.dirname(os.path.abspath(__file__))

WORDS = {
    "en": "the a river stone quietly engine Model memory I we they'll don't it's can't you're WE'RE I've "
          "she'd HE'S budget streaming layer weights of and but when Budget's THE cold morning window 'tis o'clock",
    "de": "Straße größer Übermut läuft heißt Fuß Äpfel schön gemütlich Donaudampfschiff weiß müßte",
    "fr": "l'été déjà cœur garçon où naïve qu'il aujourd'hui être forêt Noël çà œuvre",
    "es": "niño mañana ¿cómo? ¡qué! corazón pingüino años después así",
    "pl": "źdźbło łódka żółć gęś święto ćma ósmy",
    "cs": "příliš žluťoučký kůň úpěl ďábelské ódy řeka",
    "tr": "İstanbul ığdır çiçek şeker güneş öğretmen ılık",
    "vi": "tiếng Việt đường phố những người bạn ước mơ quyển sổ",
    "fi": "yö hääyöaie järvi metsässä kesäyö talossakin",
    "is": "þetta ærlega Íslandi öxl það",
    "ru": "привет река память быстро читает слой модели ёлка объём съезд",
    "uk": "їжак ґанок пам'ять річка єдність",
    "el": "καλημέρα θάλασσα μνήμη γρήγορα ὦ ἄνθρωπος λόγος",
    "ka": "გამარჯობა მდინარე ქვა", "hy": "բարեւ գետ քար", "am": "ሰላም ወንዝ ድንጋይ",
    "ar": "مرحبا النهر الحجر يقرأ بسرعة كِتَابٌ مُدَرِّس", "fa": "سلام می‌خواهم کتاب‌ها",
    "he": "שלום נהר אבן קורא בְּרֵאשִׁית מהר", "ur": "دریا پتھر یادداشت",
    "hi": "नमस्ते नदी पत्थर स्मृति पढ़ता क्षमा ज़रूर", "bn": "নমস্কার নদী পাথর স্মৃতি",
    "ta": "வணக்கம் ஆறு கல் நினைவு", "te": "నమస్తే నది రాయి", "si": "ආයුබෝවන් ගඟ",
    "th": "สวัสดี แม่น้ำ ก้อนหิน ความจำ อ่านเร็ว น้ำตา", "lo": "ສະບາຍດີ ແມ່ນ້ຳ",
    "my": "မင်္ဂလာပါ မြစ်", "km": "សួស្តី ទន្លេ", "bo": "བཀྲ་ཤིས་ ཆུ་",
    "zh": "你好 河流 石头 内存 读取 很快 模型的权重 我们都在这里 龍門 麤 𠮷野家",
    "ja": "こんにちは 川 メモリ を読む 速い テスト ｶﾀｶﾅ 東京都 ゔ がぎぐげご",
    "ko": "안녕하세요 강 돌 메모리 빠르게 읽는다 값을 뷁",
}
PUNCTUATION = list(".,;:!?…-—–()[]{}\"'’‘“”«»/\\|&%$#@*^~`_+=<>§°•·") + ["...", "!!", "?!", "--", "://", "->", "=>", "::", "\"\"\"", "，", "。", "、", "「", "」", "！", "？", "॥", "؟", "،"]
SPACES = [" ", "  ", "   ", "    ", "\t", "\t\t", "\n", "\n\n", "\n\n\n", "\r\n", "\r", " \n", "\n ", "  \n  ", "\t\n", "\v", "\f", "\u0085", "\u00a0", "\u1680", "\u2003", "\u2009", "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000", "\u200b", "\ufeff", "\u180e", "\u2060", "\x1c", "\x1f"]
EMOJI = ["😀", "🎉", "👍🏽", "👩‍💻", "👨‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "🇯🇵🇫🇷", "1️⃣", "#️⃣", "❤️", "☕", "🧑🏿‍🚀", "🫠", "✨✨", "🤷‍♀️", "©️", "♟︎", "🏴󠁧󠁢󠁳󠁣󠁴󠁿"]
NUMBERS = ["0", "7", "42", "123", "1234", "12345", "1000000", "3.14159", "-17", "+5", "1,234,567.89", "0x1F3A", "0b1010", "1e-9", "6.02E+23", "2024-02-29", "12:34:56.789", "50%", "$19.99", "€5", "½", "x²", "10³", "Ⅷ", "٣٤٥", "१२३४", "１２３", "𝟙𝟚𝟛", "①②③", "3/4", "1st", "2nd", "4K", "v1.2.3", "192.168.0.1", "555-0100", "零一二三", "007", "9" * 20, "1234567890" * 3]
MARKS = ["\u0301", "\u0300", "\u0308", "\u0327", "\u0323", "\u0302", "\u030a", "\u0303", "\u0316", "\u0345", "\u20d7", "\u0338"]
CODE = [
    "def f(x):\n    return x + 1\n\n\nclass A:\n\tpass\n",
    "for (int i = 0; i < n; ++i) {\n  sum += a[i] * b[i];\n}\n",
    "#include <vector>\nint main() { return 0; }",
    "SELECT name, COUNT(*) FROM t WHERE x >= 10 GROUP BY name;",
    "{\"key\": [1, 2.5, null, true], \"nested\": {\"a\": \"b\\n\"}}",
    "<div class=\"box\"><p>text &amp; more</p></div>",
    "if [ -f \"$HOME/.rc\" ]; then echo 'yes'; fi",
    "fn main() -> Result<(), Box<dyn Error>> { Ok(()) }",
    "let y = xs.map(v => v ** 2).filter(Boolean);",
    "\\frac{\\partial f}{\\partial x} = \\sum_{i=1}^{n} \\alpha_i",
    "@property\n    def name(self) -> str:\n        \"\"\"Doc.\"\"\"\n        return self._name",
    "a = b if c else d  # comment",
    "https://example.org/path?q=1&r=two#frag", "user.name+tag@example.com", "C:\\dir\\file.txt", "/usr/lib/x.so.1",
    "int *p = &x; p->y[3] |= ~0x0fu;", "\t\tif (x)\n\t\t\ty();\n", "        deep\n            deeper\n    back",
    "- item\n  - sub\n    1. num\n\n> quote\n\n```sh\nls -la\n```", "| a | b |\n|---|---|\n| 1 | 2 |",
    "snake_case camelCase PascalCase SCREAMING_CASE kebab-case", "x+=1;y-=2;z*=3", "\x1b[31mred\x1b[0m", "μ = 5 µm ± 0.1 Å", "∀x∈ℝ: ⌈x⌉ = −⌊−x⌋", "┌──┬──┐\n│  │  │\n└──┴──┘",
]
APOSTROPHES = ["'", "’", "ʼ", "`"]
ENDINGS = ["s", "S", "t", "T", "re", "RE", "Re", "rE", "ve", "VE", "m", "M", "ll", "LL", "lL", "d", "D", "ſ", "x", "st", "sd", "tt", "", "é"]
SPECIALS = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>", "<|start_header_id|>", "<|end_header_id|>", "<|python_tag|>", "<s>", "</s>", "<unk>", "<0x0A>", "<repo_name>", "[INST]", "[/INST]", "<|reserved_special_token_5|>", "<|im_start", "|im_end|>", "<|", "|>", "<<|im_end|>>"]

# Any assigned characters up to Unicode 14, so that every reference agrees what
# they are; no surrogates, no private use.
ASSIGNED = [c for c in range(0x20, 0x32000) if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")]
BMP_RARE = [c for c in ASSIGNED if not (0x4E00 <= c <= 0x9FFF or 0xAC00 <= c <= 0xD7A3 or 0x17000 <= c < 0x1F000 or c >= 0x20000 or 0x3400 <= c <= 0x4DBF)]


def words(language, count):
    pool = WORDS[language].split()
    return [rng.choice(pool) for _ in range(count)]


def sentence(language):
    glue = "" if language in ("zh", "ja", "th", "lo", "my", "km", "bo") and rng.random() < 0.7 else " "
    text = glue.join(words(language, rng.randint(2, 9)))
    if rng.random() < 0.4:
        text = text[:1].upper() + text[1:]
    return text + rng.choice(["", ".", "!", "?", "…", ",", ":", " ", "\n", "。", ".\n\n"])


def numbers():
    return rng.choice([" ", ", ", "", "\n", "  ", "-", "x"]).join(
        rng.choice(NUMBERS) if rng.random() < 0.6 else str(rng.randrange(10 ** rng.randint(1, 12)))
        for _ in range(rng.randint(1, 5)))


def spaces():
    parts = []
    for _ in range(rng.randint(1, 5)):
        parts.append("".join(rng.choice(SPACES) for _ in range(rng.randint(1, 4))))
        if rng.random() < 0.8:
            parts.append(rng.choice([rng.choice(WORDS["en"].split()), rng.choice(NUMBERS), rng.choice(PUNCTUATION), "字", "é"]))
    return "".join(parts)


def contractions():
    return " ".join(rng.choice(["I", "you", "They", "it", "WE", "42", "", "é", "река", "_"]) + rng.choice(APOSTROPHES) + rng.choice(ENDINGS) + rng.choice(["", "", "s", " ", "'"])
                    for _ in range(rng.randint(1, 4)))


def emoji():
    return rng.choice(["", " ", "a", "\n"]).join(rng.choice(EMOJI) for _ in range(rng.randint(1, 6))) + rng.choice(["", " ok", "!", "\n"])


def marks():
    form = rng.choice(["NFD", "NFD", "NFC", "NFKD"])
    if rng.random() < 0.5:
        return unicodedata.normalize(form, sentence(rng.choice(list(WORDS))))
    return "".join(rng.choice("aeiouncsAEOUZ ०가क") + "".join(rng.choice(MARKS) for _ in range(rng.randint(0, 4))) for _ in range(rng.randint(1, 8)))


def code():
    text = rng.choice(CODE)
    if rng.random() < 0.4:
        text = "\n".join(" " * rng.choice([0, 1, 2, 3, 4, 7, 8, 12, 16]) + line for line in text.split("\n"))
    if rng.random() < 0.2:
        text = text.replace("\n", "\r\n")
    return text + rng.choice(["", "", "\n", "  "])


def runs():
    unit = rng.choice(["a", "=", "-", " ", "\n", "\t", "0", "9", ".", "ab", "ha", "é", "字", "😀", "\r\n", " \n", "!?", "\u0301", "A", "_", "*", "́e", "ก", "\u3000", "12 "])
    return rng.choice(["", "x", " "]) + unit * rng.choice([1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100]) + rng.choice(["", "x", " ", "1", "\n"])


def controls():
    return "".join(chr(rng.choice(list(range(0, 32)) + list(range(127, 160)))) if rng.random() < 0.4 else rng.choice("ab 1.") for _ in range(rng.randint(1, 12)))


def characters():
    pool = ASSIGNED if rng.random() < 0.4 else BMP_RARE
    return "".join(chr(rng.choice(pool)) + rng.choice(["", "", "", " ", "a", "'s", "1"]) for _ in range(rng.randint(1, 10)))


def neighbours():
    start = rng.choice(BMP_RARE)
    return "".join(chr(c) for c in range(start, min(start + 12, 0x32000)) if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")) or "?"


def mixed():
    makers = [lambda: rng.choice(words(rng.choice(list(WORDS)), 1)), lambda: rng.choice(NUMBERS), lambda: rng.choice(PUNCTUATION), lambda: rng.choice(SPACES), lambda: rng.choice(EMOJI)]
    return "".join(rng.choice(makers)() for _ in range(rng.randint(2, 14)))


def punctuation():
    return "".join(rng.choice(PUNCTUATION) + rng.choice(["", "", " ", "\n", "a"]) for _ in range(rng.randint(1, 10)))


def special():
    return "".join(rng.choice([rng.choice(SPECIALS), rng.choice(SPECIALS), rng.choice(words("en", 1)), rng.choice(SPACES[:8]), rng.choice(WORDS["zh"].split()), "user\n", "42"]) for _ in range(rng.randint(1, 8)))


def main():
    makers = [(lambda: sentence(rng.choice(list(WORDS))), 520), (lambda: sentence("en") + " " + sentence(rng.choice(list(WORDS))), 200), (numbers, 220), (spaces, 300), (contractions, 140), (emoji, 100), (marks, 220), (code, 160), (runs, 240), (controls, 60), (characters, 180), (neighbours, 120), (mixed, 300), (punctuation, 120), (special, 60)]
    texts = [chr(c) for c in range(128)] + [" " + chr(c) for c in range(33, 127)]
    texts += [a + b for a in " \n\t1a.'" for b in " \n\t1a.'"] + [w for ws in WORDS.values() for w in ws.split()]
    for make, count in makers:
        texts += [make() for _ in range(count)]
    texts = list(dict.fromkeys(t for t in texts if t))
    forced = ["<|im_start|>system\nYou are kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
              "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHello there<|eot_id|>",
              "<|endoftext|><|endoftext|>", "<|im_start|><|im_start|>", " <|im_end|> ", "<|im_end|", "<|eot_id|>'s"]
    specials = list(dict.fromkeys(forced + [special() for _ in range(220)]))
    for name, lines in (("texts.jsonl", texts), ("special_texts.jsonl", specials)):
        with open(os.path.join(HERE, name), "w", encoding="ascii", newline="\n") as out:
            for line in lines:
                out.write(json.dumps(line) + "\n")
        print(name, len(lines))


main()
