# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
"""How far our token counts are from those of o200k_base, by class of text.

  token_error.py PROGRAM [FOLDER]

PROGRAM is clerestory_token_counts. Every string of 1 KB and more in the JSON of
FOLDER's files is a text: tool outputs, arguments, what users and models say. Some
are made up besides, of the classes that transcripts have few of. The vocabulary
comes with bpe-openai 0.1.4 of PyPI: its hash is checked, and nothing is fetched.

Prints for each class the texts, and the median and 95th percentile of the absolute
error in percent; last, one JSON object.
"""

import base64
import collections
import gzip
import hashlib
import importlib.resources
import json
import pathlib
import random
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator

import bpe_openai
import transcripts

TEXT_BYTES_MIN = 1_000
TEXT_BYTES_MAX = 200_000
MADE_UP_TEXTS = 24  # Of each class that is made up.
SEED = 20261130
# Of the file of ranks that defines o200k_base, as its publisher gives it.
RANKS_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
KNOWN_TOKENS = {
    "hello world": [24912, 2375],
    "tiktoken is great!": [83, 8251, 2488, 382, 2212, 0],
    "antidisestablishmentarianism": [493, 129901, 376, 160388, 21203, 2367],
}

_WIDE = re.compile("[\u1100-\u11ff\u2e80-\ud7af\uf900-\ufaff\uff00-\uffef]")
_EMOJI = re.compile("[\u2600-\u27bf\U0001f000-\U0001faff]")
_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{60,}={0,2}")
# grep -n, cat -n, diff, ls -l, or a path alone.
_LISTED = re.compile(
    r"\s*\d+[\t:→|]|\S+:\d+[:-]|@@ |[+-](?![+-]|\s?$)|[dl-][rwx-]{9}|total \d+$"
    r"|(?:\.{0,2}/)?(?:[\w.@-]+/)+[\w.@-]*$|[\s│├└─]*[├└]"
)
_CODE = re.compile(
    r"[;{}]\s*$|\s*(?:def|class|import|from|return|if|for|func|const|let|var|use|fn"
    r"|package|type|else|elif|try|except|public|private|static|void|async|await|end"
    r"|#include|//|/\*|\*/|@\w+)\b|.*[\w\])]\s?=\s?\S|.*\w\([^)]*\)|\s*[)\]}],?$|\s*<"
)
_PROSE_LINE = re.compile(r"(?:[^\W\d_]|[ ,.'’\"!?;:()-])+$")


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from strings(part)


def texts_of(path: pathlib.Path) -> Iterator[str]:
    """The strings of a file that is JSON, or JSON line by line."""
    content = path.read_text(encoding="utf-8", errors="replace")
    try:
        yield from strings(json.loads(content))
        return
    except ValueError:
        pass
    for line in content.splitlines():
        try:
            yield from strings(json.loads(line))
        except ValueError:
            continue


def _is_json(text: str) -> bool:
    if text.lstrip()[:1] not in ("{", "["):
        return False
    try:
        json.loads(text)
    except ValueError:
        # One value a line, or cut off.
        return text.count('":') * 60 > len(text)
    return True


def classify(text: str) -> str:
    """By what most of the text is, in this order: encoded runs of 60 characters or
    more are half of it; one in five characters is CJK, or one in ten an emoji; it
    parses as JSON; half of its lines look listed, then like code, then are words."""
    if sum(map(len, _ENCODED.findall(text))) * 2 > len(text):
        return "base64, hex"
    if len(_WIDE.findall(text)) * 5 > len(text):
        return "CJK"
    if len(_EMOJI.findall(text)) * 10 > len(text):
        return "emoji"
    if _is_json(text):
        return "JSON"
    lines = [line for line in text.splitlines() if line.strip()]
    for name, pattern in (("listing, grep, diff", _LISTED), ("code", _CODE)):
        if sum(bool(pattern.match(line)) for line in lines) * 2 > len(lines):
            return name
    words = re.findall(r"[^\W\d_]{2,}", text)
    if sum(map(len, words)) * 10 > len(text) * 7:
        return "prose"
    return "other"


def made_up() -> Iterator[tuple[str, str]]:
    """Texts of classes that transcripts have too few of."""
    rng = random.Random(SEED)
    emoji = [chr(c) for c in range(0x1F600, 0x1F64F)] + ["🚀", "🎉", "✨", "❤️", "👍🏽"]
    for i in range(MADE_UP_TEXTS):
        data = rng.randbytes(rng.randint(1_000, 8_000))
        yield (
            "base64, hex, made up",
            data.hex() if i % 3 == 0 else base64.b64encode(data).decode(),
        )
        yield "CJK, made up", "".join(rng.choices(CJK_SENTENCES, k=60))
        yield "emoji, made up", " ".join("".join(rng.choices(emoji, k=3)) for _ in range(120))


CJK_SENTENCES = (
    "测试全部通过，没有发现新的问题。",
    "请检查配置文件中的端口号是否正确。",
    "函数返回值应该是一个列表，而不是字典。",
    "我们需要先读取文件，然后再修改第三行。",
    "服务器在重启之后无法连接到数据库。",
    "该提交修复了内存泄漏，并添加了单元测试。\n",
    "このファイルには設定が含まれています。",
    "テストはすべて成功しました。",
    "エラーの原因は、引数の型が違うことです。",
    "次に、関数の戻り値を確認してください。\n",
    "サーバーを再起動すると接続できなくなります。",
    "파일을 읽은 다음 세 번째 줄을 수정하세요.",
    "모든 테스트가 통과했습니다.",
    "설정 파일에서 포트 번호를 확인해야 합니다.\n",
    "서버를 다시 시작하면 데이터베이스에 연결할 수 없습니다.",
)


def gather(folder: pathlib.Path) -> list[tuple[str, str]]:
    """The class and text of each, in a fixed order, none twice."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix not in (".json", ".jsonl", ".traj"):
            continue
        for text in texts_of(path):
            data = text.encode("utf-8", errors="replace")
            if len(data) >= TEXT_BYTES_MIN:
                cut = data[:TEXT_BYTES_MAX].decode("utf-8", errors="ignore")
                found.setdefault(cut)
    return [(classify(text), text) for text in found] + list(made_up())


def vocabulary() -> bpe_openai.Encoding:
    ranks = importlib.resources.files("bpe_openai.data") / "o200k_base.tiktoken.gz"
    digest = hashlib.sha256(gzip.decompress(ranks.read_bytes())).hexdigest()
    if digest != RANKS_SHA256:
        sys.exit(f"bpe-openai brings other ranks than o200k_base's: {digest}")
    encoding = bpe_openai.get_encoding("o200k_base")
    for text, tokens in KNOWN_TOKENS.items():
        if encoding.encode_ordinary(text) != tokens:
            sys.exit(f"bpe-openai does not count as o200k_base does: {text}")
    return encoding


def estimates(program: str, texts: list[str]) -> list[int]:
    data = [text.encode() for text in texts]
    request = b"".join(b"%d\n%s" % (len(text), text) for text in data)
    answer = subprocess.run([program], input=request, capture_output=True, check=True)
    return [int(line) for line in answer.stdout.split()]


def main() -> None:
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[2]) if len(sys.argv) == 3 else transcripts.SHARED
    samples = gather(folder)
    encoding = vocabulary()
    errors = collections.defaultdict(list)
    estimated = estimates(sys.argv[1], [text for _, text in samples])
    for (name, text), estimate in zip(samples, estimated, strict=True):
        true = len(encoding.encode_ordinary(text))
        errors[name].append(100 * abs(estimate - true) / true)
    everything = sorted(error for part in errors.values() for error in part)
    medians = {}
    print(f"{'class':<20} {'texts':>6} {'median %':>9} {'p95 %':>7}")
    for name, part in [*sorted(errors.items()), ("all", everything)]:
        part = sorted(part)
        medians[name] = statistics.median(part)
        p95 = part[int(0.95 * (len(part) - 1))]
        print(f"{name:<20} {len(part):>6} {medians[name]:>9.2f} {p95:>7.2f}")
    median = medians.pop("all")
    worst = max(medians, key=lambda name: medians[name])
    print(
        json.dumps(
            {
                "texts": len(everything),
                "median": round(median, 2),
                "worst_class": worst,
                "worst_class_median": round(medians[worst], 2),
            }
        )
    )


if __name__ == "__main__":
    main()
