// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/tokens/class_token_counter.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "server/tokens/image_tokens.h"
#include "server/tokens/token_counter.h"

namespace clerestory {
namespace {

constexpr std::uint64_t kSeed = 20261130;

std::int64_t Plain(absl::string_view text) {
  return ClassTokenCounter().CountText(text, TextForm::kPlain);
}

std::int64_t Escaped(absl::string_view text) {
  return ClassTokenCounter().CountText(text, TextForm::kJsonEscaped);
}

// A text of one class, with the tokens that o200k_base makes of it and those
// that are estimated.
struct Sample {
  absl::string_view name;
  std::int64_t token_count;
  std::int64_t estimate;
  absl::string_view text;
};

constexpr std::array<Sample, 17> kSamples = {{
    {"Prose", 130, 131,
     R"(The ferry leaves at a quarter past six, provided that the tide allows it. In
winter it often does not, and the passengers wait in the small office beside the
quay, where somebody has left a kettle and three chairs. Nobody complains. They
have brought books, or knitting, or letters which they meant to answer weeks ago,
and the hours pass more quickly than one would expect.

What surprised me most was the silence. I had imagined that an island would be a
noisy place, full of wind and birds; instead there was only the slow movement of
water under the boards, and now and then a door.
)"},
    {"Markdown", 92, 93, R"(## Summary

I've fixed the failing test. The cause was in `parse_header()`: it compared the
*trimmed* value with the raw one, so a trailing space made **every** request look
new.

1. `server/header.py`: trim both sides before comparing.
2. `tests/test_header.py`: a case for the trailing space.

All 214 tests pass. Let me know if you'd like me to open a pull request!
)"},
    {"Cpp", 165, 168,
     R"(absl::StatusOr<std::vector<Entry>> ReadEntries(absl::string_view path) {
  std::ifstream file(std::string(path), std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("no file ", path));
  std::vector<Entry> entries;
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    entries.push_back({line.substr(0, colon), line.substr(colon + 1)});
    if (entries.size() > kMaxEntries) {
      return absl::ResourceExhaustedError("too many entries");
    }
  }
  return entries;
}
)"},
    {"Python", 141, 141, R"(class RetryPolicy:
    """Decides whether a failed request is sent again, and when."""

    def __init__(self, attempts=3, base_delay=0.5, jitter=None):
        self._attempts = attempts
        self._base_delay = base_delay
        self._jitter = jitter or (lambda delay: delay)

    def delays(self):
        for attempt in range(self._attempts):
            yield self._jitter(self._base_delay * 2 ** attempt)

    def should_retry(self, response):
        if response is None:
            return True
        return response.status_code in (429, 500, 502, 503, 504)
)"},
    {"JsonMinified", 264, 265,
     "[{\"id\":82644,\"name\":\"Desk lamp\",\"tags\":[\"new\",\"sale\"],\"pri"
     "ce\":{\"amount\":42.85,\"currency\":\"EUR\"},\"in_stock\":false,\"cr"
     "eated_at\":\"2026-01-10T08:30:00Z\"},{\"id\":98227,\"name\":\"Wool"
     " blanket\",\"tags\":[\"new\",\"sale\"],\"price\":{\"amount\":59.74,\"c"
     "urrency\":\"EUR\"},\"in_stock\":true,\"created_at\":\"2026-02-11T0"
     "8:31:00Z\"},{\"id\":91498,\"name\":\"Kitchen scale\",\"tags\":[\"new"
     "\",\"sale\"],\"price\":{\"amount\":87.84,\"currency\":\"EUR\"},\"in_st"
     "ock\":false,\"created_at\":\"2026-03-12T08:32:00Z\"},{\"id\":4801"
     ",\"name\":\"Garden hose\",\"tags\":[\"new\",\"sale\"],\"price\":{\"amou"
     "nt\":77.28,\"currency\":\"EUR\"},\"in_stock\":true,\"created_at\":\""
     "2026-04-13T08:33:00Z\"},{\"id\":33643,\"name\":\"Picture frame\","
     "\"tags\":[\"new\",\"sale\"],\"price\":{\"amount\":9.49,\"currency\":\"E"
     "UR\"},\"in_stock\":false,\"created_at\":\"2026-05-14T08:34:00Z\"}"
     "]"},
    {"JsonPretty", 135, 128, R"({
  "name": "example-service",
  "version": "2.4.1",
  "private": true,
  "scripts": {
    "build": "tsc --project tsconfig.json",
    "test": "vitest run --coverage",
    "lint": "eslint src --max-warnings 0"
  },
  "dependencies": {
    "fastify": "^5.2.0",
    "pino": "^9.6.0",
    "zod": "^3.24.1"
  },
  "engines": {
    "node": ">=20.0.0"
  }
})"},
    {"Listing", 376, 368, R"(total 184
drwxr-xr-x  6 dev  dev   4096 Nov 12 09:41 .
drwxr-xr-x 11 dev  dev   4096 Nov  3 17:20 ..
-rw-r--r--  1 dev  dev   20678 Nov  4 11:30 CHANGELOG.md
-rw-r--r--  1 dev  dev   32438 Nov 13 17:06 Dockerfile
-rw-r--r--  1 dev  dev   75347 Nov  8 00:46 Makefile
-rw-r--r--  1 dev  dev   28527 Nov 14 08:11 README.md
-rw-r--r--  1 dev  dev   51164 Nov  6 02:08 go.mod
-rw-r--r--  1 dev  dev   81112 Nov 20 14:08 go.sum
-rw-r--r--  1 dev  dev   17453 Nov  1 00:13 main.go
-rw-r--r--  1 dev  dev   28363 Nov  6 05:18 main_test.go
-rw-r--r--  1 dev  dev   41230 Nov  7 17:56 server.go
-rw-r--r--  1 dev  dev   88964 Nov 21 06:11 store_sqlite.go
-rw-r--r--  1 dev  dev   90643 Nov  7 12:19 .gitignore
-rw-r--r--  1 dev  dev    2947 Nov 12 13:10 config.yaml
)"},
    {"Grep", 161, 159,
     R"(src/server/routes.ts:12:import { FastifyInstance } from 'fastify';
src/server/routes.ts:48:  app.get('/health', async () => ({ status: 'ok' }));
src/server/routes.ts:57:  app.post('/sessions/:id/messages', appendMessages);
src/server/sessions.ts:9:export async function appendMessages(request, reply) {
src/server/sessions.ts:31:    throw new NotFoundError(`session ${request.params.id}`);
src/store/sqlite.ts:104:    const rows = this.db.prepare(SELECT_MESSAGES).all(id);
src/store/sqlite.ts:130:  // Callers hold the lock.
test/sessions.test.ts:22:  it('refuses a message of the wrong role', async () => {
)"},
    {"TestLog", 132, 128, R"($ pytest -q tests
........................F...............                                  [100%]
=================================== FAILURES ===================================
______________________________ test_expired_token ______________________________

    def test_expired_token():
        token = make_token(expires_in=-1)
>       assert verify(token) is None
E       AssertionError: assert {'sub': 'alice', 'exp': 1764460799} is None

tests/test_token.py:37: AssertionError
=========================== short test summary info ============================
FAILED tests/test_token.py::test_expired_token - AssertionError: assert {'sub...
1 failed, 39 passed in 2.14s
)"},
    {"Base64", 419, 412,
     "bSXPc0xJod0nPk2Pq19b240QmewF6P3Hwdc0d3ZIq3O94gGCUEXk2jLaXp"
     "Z5a50weOZFLylpzM3CcQyDhp7LeXn+P6HtZyydU4gAyyUUqS+TeRgYxu1T"
     "coG0q02cr0wkJS82F1/R54k/3UTPwPnv4ycvhbFif2uiZ6u4CsuGbpg0B3"
     "H7cr1qZbhd+vaqePdzlndnp1OXKb1+hJWdOA1rpmeIUSimWIWfhBbXA9Bl"
     "6tS2/kOHi5MrENO9Pg9liiAJC32xMI8rK+E4+u89JZKAmRR+swfAHDLHrm"
     "jEdhP2h1O4pcZwIx5Jl+1NqdfqlAAyYFHlhEYz0DtNKOqjdIRNSyki8X+m"
     "Di0B70qWqd/SwRU3khN1kBShpxyvNUeypiJoiWVm/9rhH42ypeX+P+yC7t"
     "pdGNeq0kwV/AIztafMBUH8AbZQwqILwmZiyzp6aEyDsIX+SVrSnQfAKvoR"
     "TxcqkHBxK8QuGaEbEZqAZuT7mBtctLnYs5x4ShqN8mKqihsRHURC9QXvUg"
     "QVS+nY7nBVr4K2IwDfC6g2VAqwNUGiUu3flAfpcgNlDQgWUXhFWx5gqc34"
     "+h1qerXLmr1lD3N3a7IS"},
    {"Hex", 333, 333,
     R"(6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d  part-00.bin
4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a  part-01.bin
dbc1b4c900ffe48d575b5da5c638040125f65db0fe3e24494b76ea986457d986  part-02.bin
084fed08b978af4d7d196a7446a86b58009e636b611db16211b65a9aadff29c5  part-03.bin
e52d9c508c502347344d8c07ad91cbd6068afc75ff6292f062a09ca381c89e71  part-04.bin
e77b9a9ae9e30b0dbdb6f510a264ef9de781501d7b6b92ae89eb059c5ab743db  part-05.bin
67586e98fad27da0b9968bc039a1ef34c939b9b8e523a8bef89d478608c5ecf6  part-06.bin
ca358758f6d27e6cf45272937977a748fd88391db679ceda7dc7bf1f005ee879  part-07.bin)"},
    {"Chinese", 108, 129,
     R"(会议从上午九点开始，一直持续到下午。主要讨论了三个问题：第一，如何在不增加成本的情况下提高数据
处理的速度；第二，新版本的界面是否需要重新设计；第三，明年的招聘计划。大家一致认为，目前最重要的
是先解决性能问题，因为用户已经多次反映页面打开太慢。技术部门将在两周之内提交一份详细的报告，说明
现有系统的瓶颈以及可行的改进方案。
)"},
    {"Japanese", 117, 119,
     R"(このプログラムは、設定ファイルを読み込んでからサーバーを起動します。ファイルが見つからない場合は、
エラーメッセージを表示して終了します。接続が切れたときには自動的に再接続を試みますが、五回続けて
失敗すると処理を中止します。詳しい使い方については、付属の説明書をご覧ください。なお、古い
バージョンとの互換性はありません。
)"},
    {"Korean", 74, 91,
     R"(이 문서는 새로운 사용자를 위한 안내서입니다. 먼저 계정을 만들고 이메일 주소를 확인해 주세요. 그런
다음 설정 화면에서 언어와 시간대를 선택할 수 있습니다. 문제가 생기면 도움말을 읽거나 고객 센터에
연락하시기 바랍니다. 모든 질문에는 보통 하루 안에 답변을 드립니다.
)"},
    {"Russian", 69, 71,
     R"(Утром мы вышли из дома раньше обычного, потому что поезд отправлялся в семь часов. На станции почти
никого не было, только старый сторож подметал платформу и негромко разговаривал с собакой. Через
несколько минут показался поезд, и мы заняли места у окна.
)"},
    {"French", 71, 72,
     R"(Le marché se tient chaque samedi sur la place, entre l'église et la mairie. Dès six heures, les
marchands installent leurs étals, déchargent les caisses de légumes et préparent le café. Vers midi,
il ne reste déjà plus rien: tout a été vendu, même les dernières pommes un peu abîmées.
)"},
    {"Symbols", 56, 54, R"(✅ 12 checks passed  ⚠️ 1 warning  ❌ 0 failed
├── src
│   ├── index.ts → dist/index.js
│   └── “quoted” … name.ts
└── test 🚀🚀
)"},
}};

// Such texts vary by more than a class as a whole does; characters of Chinese
// and Korean count alike, and common ones are cheaper.
std::int64_t PercentOff(const Sample& sample) {
  return sample.name == "Chinese" || sample.name == "Korean" ? 25 : 6;
}

class SampleTest : public testing::TestWithParam<Sample> {};

TEST_P(SampleTest, EstimateIsNearTheVocabulary) {
  const Sample& sample = GetParam();
  const std::int64_t off = std::abs(Plain(sample.text) - sample.token_count);
  EXPECT_LE(off * 100, sample.token_count * PercentOff(sample))
      << Plain(sample.text) << " instead of " << sample.token_count;
}

// Counts decide what is masked, so one that changes changes views: a new
// estimate is a new counter, or a decision.
TEST_P(SampleTest, EstimateStaysTheSame) {
  EXPECT_EQ(Plain(GetParam().text), GetParam().estimate);
}

INSTANTIATE_TEST_SUITE_P(Classes, SampleTest, testing::ValuesIn(kSamples),
                         [](const testing::TestParamInfo<Sample>& sample) {
                           return std::string(sample.param.name);
                         });

TEST(ClassTokenCounterTest, NothingIsZeroAndAnyByteAtLeastOne) {
  EXPECT_EQ(Plain(""), 0);
  EXPECT_EQ(Escaped(""), 0);
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text(1, static_cast<char>(byte));
    EXPECT_GE(Plain(text), 1) << byte;
    EXPECT_GE(Escaped(text), 1) << byte;
    EXPECT_GE(Escaped(absl::StrCat("\\", text)), 1) << byte;
  }
}

TEST(ClassTokenCounterTest, OrdinaryWordsAreOneToken) {
  EXPECT_EQ(Plain("the"), 1);
  EXPECT_EQ(Plain(" return"), 1);
  EXPECT_EQ(Plain("one two three four five six"), 6);
  EXPECT_EQ(Plain("123456"), 2);
  EXPECT_EQ(Plain("        }\n"), 2);
}

// --- escapes -----------------------------------------------------------------

TEST(ClassTokenCounterTest, EscapesCountAsWhatTheyStandFor) {
  EXPECT_EQ(Escaped(R"(a\n\tb\r\n \"c\" \\ \/ \b\f)"),
            Plain("a\n\tb\r\n \"c\" \\ / \b\f"));
  EXPECT_EQ(Escaped(R"(caf\u00e9 \u4f60\u597d \uD83D\uDE80)"),
            Plain("caf\xc3\xa9 \xe4\xbd\xa0\xe5\xa5\xbd \xf0\x9f\x9a\x80"));
  EXPECT_EQ(Escaped(R"(\u0022\u005c\u0041)"), Plain("\"\\A"));
}

TEST(ClassTokenCounterTest, BrokenEscapesCountAsTheyStand) {
  constexpr absl::string_view kReplacement = "\xef\xbf\xbd";
  EXPECT_EQ(Escaped(R"(a\ud800b)"),
            Plain(absl::StrCat("a", kReplacement, "b")));
  EXPECT_EQ(Escaped(R"(\udc00\ud800)"),
            Plain(absl::StrCat(kReplacement, kReplacement)));
  for (const absl::string_view text :
       {"\\", "\\x", "\\u", "\\u12", "\\u12g4", "ab\\u00e", "\\U0041"}) {
    EXPECT_EQ(Escaped(text), Plain(text)) << text;
  }
}

struct Character {
  std::uint32_t code;
  std::string bytes;
};

// A character of one of the kinds that texts are made of.
Character RandomCharacter(std::mt19937_64& rng) {
  constexpr absl::string_view kAscii =
      "aeinorst etaoin ETAOIN 0123456789 "
      ".,:;(){}[]<>=-_+*/\\\"'#!?&|\n\r\t\b\f";
  std::uint32_t code = 0;
  switch (rng() % 6) {
    case 0:
      code = static_cast<std::uint32_t>(0x80 + rng() % 0x780);
      break;
    case 1:
      code = static_cast<std::uint32_t>(0x3040 + rng() % 0x6000);
      return {code,
              {static_cast<char>(0xe0 | code >> 12),
               static_cast<char>(0x80 | (code >> 6 & 0x3f)),
               static_cast<char>(0x80 | (code & 0x3f))}};
    case 2:
      code = static_cast<std::uint32_t>(0x1f300 + rng() % 0x400);
      return {code,
              {static_cast<char>(0xf0), static_cast<char>(0x80 | code >> 12),
               static_cast<char>(0x80 | (code >> 6 & 0x3f)),
               static_cast<char>(0x80 | (code & 0x3f))}};
    default:
      code = static_cast<std::uint32_t>(kAscii[rng() % kAscii.size()]);
      return {code, std::string(1, static_cast<char>(code))};
  }
  return {code,
          {static_cast<char>(0xc0 | code >> 6),
           static_cast<char>(0x80 | (code & 0x3f))}};
}

// One of the ways to write `character` inside a JSON string.
std::string Spell(const Character& character, std::mt19937_64& rng) {
  const std::uint32_t code = character.code;
  const bool must = code < 0x20 || code == '"' || code == '\\';
  if (!must && rng() % 2 == 0) return character.bytes;
  constexpr absl::string_view kMarks = "\"\\/\b\f\n\r\t";
  constexpr absl::string_view kNames = "\"\\/bfnrt";
  const std::size_t at =
      code < 0x80 ? kMarks.find(static_cast<char>(code)) : kMarks.npos;
  if (at != kMarks.npos && rng() % 2 == 0) {
    return absl::StrCat("\\", kNames.substr(at, 1));
  }
  if (code < 0x10000) {
    return rng() % 2 == 0 ? absl::StrFormat("\\u%04x", code)
                          : absl::StrFormat("\\u%04X", code);
  }
  return absl::StrFormat("\\u%04x\\u%04X", 0xd800 + ((code - 0x10000) >> 10),
                         0xdc00 + ((code - 0x10000) & 0x3ff));
}

TEST(ClassTokenCounterTest, EscapedTextCountsAsItsPlainText) {
  SCOPED_TRACE(absl::StrCat("seed ", kSeed));
  std::mt19937_64 rng(kSeed);
  for (int round = 0; round < 2'000; ++round) {
    std::string plain;
    std::string escaped;
    const std::uint64_t length = rng() % 60;
    for (std::uint64_t i = 0; i < length; ++i) {
      const Character character = RandomCharacter(rng);
      absl::StrAppend(&plain, character.bytes);
      absl::StrAppend(&escaped, Spell(character, rng));
    }
    ASSERT_EQ(Escaped(escaped), Plain(plain)) << escaped;
  }
}

// --- any bytes ---------------------------------------------------------------

TEST(ClassTokenCounterTest, AnyBytesAreCounted) {
  SCOPED_TRACE(absl::StrCat("seed ", kSeed));
  std::mt19937_64 rng(kSeed);
  for (int round = 0; round < 2'000; ++round) {
    // Exactly as large as the text, so that a sanitizer sees a byte too many.
    std::vector<char> bytes(1 + rng() % 40);
    for (char& byte : bytes) byte = static_cast<char>(rng());
    if (rng() % 2 == 0) bytes.back() = '\\';
    const absl::string_view text(bytes.data(), bytes.size());
    const auto most = static_cast<std::int64_t>(4 * text.size());
    EXPECT_GE(Plain(text), 1);
    EXPECT_LE(Plain(text), most);
    EXPECT_GE(Escaped(text), 1);
    EXPECT_LE(Escaped(text), most);
  }
}

TEST(ClassTokenCounterTest, TextMayEndAnywhere) {
  for (const Sample& sample : kSamples) {
    for (std::size_t size = 1; size <= sample.text.size(); ++size) {
      const std::vector<char> bytes(sample.text.begin(),
                                    sample.text.begin() + size);
      EXPECT_GE(Escaped({bytes.data(), bytes.size()}), 1);
    }
  }
}

TEST(ClassTokenCounterTest, NoRunIsFreeHoweverLong) {
  constexpr std::int64_t kSize = 100'000;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text(static_cast<std::size_t>(kSize),
                           static_cast<char>(byte));
    EXPECT_GE(Plain(text), kSize / 128) << byte;
  }
}

// --- parts -------------------------------------------------------------------

TEST(ClassTokenCounterTest, LongerTextHasNoFewerTokensButForOne) {
  for (const Sample& sample : kSamples) {
    std::int64_t most = 0;
    for (std::size_t size = 1; size <= sample.text.size(); ++size) {
      const std::int64_t count = Plain(sample.text.substr(0, size));
      EXPECT_GE(count, most - 1) << sample.name << " at " << size;
      most = std::max(most, count);
    }
  }
}

TEST(ClassTokenCounterTest, PartsHaveTheTokensOfTheWhole) {
  for (const Sample& sample : kSamples) {
    for (std::size_t size = 1; size < sample.text.size(); ++size) {
      const std::int64_t parts =
          Plain(sample.text.substr(0, size)) + Plain(sample.text.substr(size));
      EXPECT_LE(std::abs(parts - Plain(sample.text)), 4)
          << sample.name << " cut at " << size;
    }
  }
}

TEST(ClassTokenCounterTest, PicturesAreCountedByImageTokens) {
  constexpr absl::string_view kGifOf100By50 = "R0lGODlhZAAyAA==";
  EXPECT_EQ(
      ClassTokenCounter().CountImage(kGifOf100By50, ImageFormula::kAnthropic),
      8);
  EXPECT_EQ(
      ClassTokenCounter().CountImage(kGifOf100By50, ImageFormula::kOpenai), 8);
  EXPECT_EQ(
      ClassTokenCounter().CountImage(kGifOf100By50, ImageFormula::kGemini),
      kGeminiImageTokens);
  EXPECT_EQ(ClassTokenCounter().CountImage("", ImageFormula::kAnthropic),
            kUnknownImageTokens);
}

}  // namespace
}  // namespace clerestory
