// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// What users of other systems reported about tokens that were estimated wrong:
// pictures, base64 in texts, and scripts without spaces. The number of a test
// is that of the report; what failed there is said above it.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/cost/prices.h"
#include "server/formats/format.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/tokens/class_token_counter.h"
#include "server/tokens/image_tokens.h"
#include "server/tokens/token_counter.h"
#include "server/view/plan_view.h"
#include "server/view/session.h"
#include "tests/support/messages.h"
#include "tests/support/scripted_session.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::SizeIs;

constexpr Format kAnthropic = Format::kAnthropicMessages;

// 800 times 600 pixels: 29 times 22 patches.
constexpr std::int64_t kPictureTokens = 638;

// So many bytes that no compression would make fewer, behind the header of a
// PNG of 800 times 600 pixels, as base64.
std::string PictureOf(std::size_t bytes) {
  std::string data(
      "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x03\x20\0\0\x02\x58\x08\x06\0\0\0",
      29);
  unsigned state = 1;
  while (data.size() < bytes) {
    state = state * 1'103'515'245U + 12'345U;
    data += static_cast<char>(state >> 24);
  }
  return absl::Base64Escape(data);
}

std::string PictureBlock(const std::string& base64) {
  return absl::StrCat(
      R"({"type":"image","source":{"type":"base64","media_type":"image/png",)",
      R"("data":")", base64, R"("}})");
}

std::string PictureResult(absl::string_view id, const std::string& base64) {
  return ResultMessages(
             kAnthropic,
             {{.id = std::string(id),
               .content = absl::StrCat("[", PictureBlock(base64), "]")}})
      .front();
}

std::int64_t TokensOf(Format format, const std::string& message) {
  const absl::StatusOr<ParsedMessage> parsed =
      AdapterFor(format).Parse(message, ClassTokenCounter());
  EXPECT_THAT(parsed, IsOk());
  return parsed.ok() ? parsed->tokens.total() : -1;
}

// A session whose tokens are estimated as the service does.
class EstimatedSession {
 public:
  EstimatedSession() : session_(Header(), ClassTokenCounter()) {}

  void Append(const std::string& message) {
    const MessageAppended record = {.time = 1, .message = ToBytes(message)};
    absl::StatusOr<std::vector<ParsedMessage>> parsed =
        session_.CheckAppend({record.message});
    ASSERT_THAT(parsed, IsOk());
    session_.Append(record, std::move(parsed->front()));
  }

  void AppendTurn(int turn, const std::string& base64) {
    const std::string id = absl::StrCat("c", turn);
    Append(AssistantMessage(kAnthropic, "", {{.id = id}}));
    Append(PictureResult(id, base64));
  }

  ViewServed Serve(const Policy& policy, const ModelPrices& prices) {
    ViewServed view =
        PlanView(session_, policy, prices, {.now = 1, .model = "m"});
    session_.Apply(view);
    return view;
  }

  const Session& session() const { return session_; }

 private:
  static SessionHeader Header() {
    SessionHeader header;
    header.key = {.tenant = "t", .session = "s"};
    header.format = kAnthropic;
    return header;
  }

  Session session_;
};

Policy ThresholdPolicy(std::int64_t tokens) {
  Policy policy = PlainPolicy();
  policy.mode = Mode::kThreshold;
  policy.threshold_tokens = tokens;
  return policy;
}

// justrach/codegraff#260: a pasted picture was estimated at 398,000 tokens, and
// a new chat was compacted at once.
TEST(ReportTest, N99_AFourMegabytePictureCountsByItsPixels) {
  const std::string base64 = PictureOf(3 << 20);
  ASSERT_EQ(base64.size(), std::size_t{4 << 20});
  EstimatedSession s;
  s.AppendTurn(0, base64);
  ASSERT_THAT(s.session().observations(), SizeIs(1));
  const ParsedResult& result = s.session().observations()[0].result;
  EXPECT_EQ(result.token_count, kPictureTokens);
  EXPECT_EQ(result.image_count, 1);
}

// code-yeongyu/senpi#1455: where the picture's kind was not known, its bytes
// were counted.
TEST(ReportTest, N100_TheBytesOfAPictureOfAnUnknownKindAreNotCounted) {
  const auto anthropic = [](std::size_t bytes) {
    return TokensOf(
        kAnthropic,
        PictureResult("c", absl::Base64Escape(std::string(bytes, '\x55'))));
  };
  const auto chat = [](std::size_t bytes) {
    return TokensOf(
        Format::kOpenaiChat,
        absl::StrCat(
            R"({"role":"user","content":[{"type":"image_url","image_url":)",
            R"({"url":"data:image/x-unknown;base64,)",
            absl::Base64Escape(std::string(bytes, '\x55')), R"("}}]})"));
  };
  EXPECT_EQ(anthropic(3 << 20), kUnknownImageTokens);
  EXPECT_EQ(anthropic(3 << 10), kUnknownImageTokens);
  EXPECT_EQ(chat(3 << 20), chat(3 << 10));
  EXPECT_THAT(chat(3 << 20), AllOf(Ge(1), Le(2 * kUnknownImageTokens)));
}

// code-yeongyu/senpi#233: the opposite. In a text, base64 is text, and a token
// is a character or two of it, not four.
TEST(ReportTest, N101_BaseSixtyFourInATextIsDense) {
  const std::string text =
      absl::StrCat("data:image/png;base64,", PictureOf((1 << 20) * 3 / 4));
  const auto chars = static_cast<std::int64_t>(text.size());
  for (const Format format : {kAnthropic, Format::kOpenaiChat}) {
    EXPECT_THAT(TokensOf(format, UserMessage(format, text)),
                AllOf(Ge(chars / 2), Le(chars)));
    EXPECT_THAT(
        TokensOf(format,
                 ResultMessages(format, {{.id = "c", .content = Literal(text)}})
                     .front()),
        AllOf(Ge(chars / 2), Le(chars)));
  }
}

// talesofai/cohub#122: 45 pictures were too many bytes for the provider, 413,
// and nothing had counted them.
TEST(ReportTest, N103_FortyFivePicturesAreCountedAndMasked) {
  const std::string base64 = PictureOf(100'000);
  EstimatedSession s;
  for (int i = 0; i < 45; ++i) s.AppendTurn(i, base64);
  EXPECT_EQ(s.session().view_image_count(), 45);
  EXPECT_EQ(s.session().raw_tokens().observations, 45 * kPictureTokens);
  const std::int64_t bytes = s.session().view_bytes();
  const ViewServed view = s.Serve(ThresholdPolicy(20'000), PlainPrices());
  EXPECT_THAT(view.masks, SizeIs(42));
  EXPECT_EQ(s.session().view_image_count(), 3);
  EXPECT_LT(s.session().view_bytes(), bytes / 10);
}

// vllm-project/agentic-api#255: bytes of pictures made compaction come early.
TEST(ReportTest, N104_PicturesDoNotMakeABreakComeEarly) {
  const std::string base64 = PictureOf(400'000);
  EstimatedSession s;
  const Policy policy = ThresholdPolicy(20'000);
  int turn = 0;
  // 20,000 tokens are 31 pictures, with what the calls take.
  for (; turn < 28; ++turn) {
    s.AppendTurn(turn, base64);
    EXPECT_THAT(s.Serve(policy, PlainPrices()).masks, IsEmpty());
  }
  for (; turn < 33; ++turn) s.AppendTurn(turn, base64);
  EXPECT_FALSE(s.Serve(policy, PlainPrices()).masks.empty());
}

// A text of about 1,000 characters, and how many.
struct Script {
  absl::string_view name;
  absl::string_view text;
  std::int64_t characters = 0;
};

constexpr Script kScripts[] = {
    {"Chinese",
     "系统在每次请求之前都会检查缓存是否仍然有效，如果无效则重新计算。", 32},
    {"Japanese",
     "ファイルを読み込んだあと、結果を確認してから次の手順に進みます。", 32},
    {"Korean", "파일을 읽은 다음 결과를 확인하고 다음 단계로 넘어갑니다.", 31},
};

std::string Repeated(absl::string_view text, int count) {
  std::string repeated;
  for (int i = 0; i < count; ++i) absl::StrAppend(&repeated, text);
  return repeated;
}

std::int64_t Estimate(absl::string_view text) {
  return ClassTokenCounter().CountText(text, TextForm::kPlain);
}

// openclaw/openclaw#39985: Chinese, Japanese and Korean text was estimated at a
// quarter of what it takes, and the window overflowed.
TEST(ReportTest, N105_ScriptsWithoutSpacesAreNotCountedByFour) {
  for (const Script& script : kScripts) {
    const std::int64_t tokens = Estimate(Repeated(script.text, 30));
    const std::int64_t characters = 30 * script.characters;
    // o200k_base makes 0.5 to 0.9 tokens of a character of these.
    EXPECT_THAT(tokens,
                AllOf(Ge(characters * 45 / 100), Le(characters * 12 / 10)))
        << script.name;
    // In JSON, spelled as it is or escaped.
    EXPECT_EQ(ClassTokenCounter().CountText(Repeated(script.text, 30),
                                            TextForm::kJsonEscaped),
              tokens)
        << script.name;
  }
}

// cymoo/lovia#91: one ratio for all text was corrected by usage until it stood
// at the end of what it may be: a mixed history needs a ratio for each script.
TEST(ReportTest, N107_EachScriptInAMixedTextHasItsOwnRatio) {
  const std::string english = Repeated(
      "The service checks the cache before each request and counts again. ",
      30);
  for (const Script& script : kScripts) {
    const std::string other = Repeated(script.text, 30);
    const std::int64_t parts = Estimate(english) + Estimate(other);
    const std::int64_t mixed = Estimate(absl::StrCat(english, "\n", other));
    EXPECT_THAT(mixed, AllOf(Ge(parts - 3), Le(parts + 3))) << script.name;
    EXPECT_LT(Estimate(english) * script.characters * 30,
              Estimate(other) * static_cast<std::int64_t>(english.size()))
        << script.name << " takes more tokens a character";
  }
}

}  // namespace
}  // namespace clerestory
