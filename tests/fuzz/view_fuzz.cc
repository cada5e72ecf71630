// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

// A session of one format out of any bytes: a line is a message, an empty line
// asks for a view. The first line sets the policy, and by its length whether
// the model binds reasoning to its prefix. Whatever comes, a view begins as the
// one before it did up to the break that it declares, no larger than the
// history, shows no reasoning that would be refused, and a restart gives the
// same bytes.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "server/base/check.h"
#include "server/cost/price_book.h"
#include "server/cost/prices.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/tokens/class_token_counter.h"
#include "server/tokens/token_counter.h"
#include "server/view/plan_view.h"
#include "server/view/session.h"
#include "server/view/view.h"

namespace clerestory {
namespace {

class Driver {
 public:
  Driver(const Policy& policy, bool is_bound, const TokenCounter& counter)
      : policy_(policy), counter_(counter), session_(Header(), counter) {
    prices_.reasoning_prefix_bound = is_bound;
  }

  void Append(absl::string_view line) {
    const MessageAppended record = {
        .time = 0, .message = std::make_shared<const std::string>(line)};
    absl::StatusOr<std::vector<ParsedMessage>> parsed =
        session_.CheckAppend({record.message});
    if (!parsed.ok()) return;
    session_.Append(record, std::move(parsed->front()));
    records_.emplace_back(record);
  }

  void Serve() {
    const std::int64_t last_count = session_.last_view().has_value()
                                        ? session_.last_view()->message_count
                                        : 0;
    const ViewServed decision =
        PlanView(session_, policy_, prices_, {.now = 0, .model = "m"});
    session_.Apply(decision);
    records_.emplace_back(decision);
    const View view = DescribeView(session_, decision, last_count,
                                   FrontierOf(session_, policy_, prices_));
    CLERESTORY_CHECK(view.whole.byte_count <= session_.history_bytes());
    const auto stable = static_cast<std::size_t>(view.stable.message_count);
    CLERESTORY_CHECK(decision.break_reason != BreakReason::kNone ||
                     stable == last_.size());
    for (std::size_t i = 0; i < stable; ++i) {
      CLERESTORY_CHECK(*view.messages.at(i) == *last_.at(i));
    }
    CLERESTORY_CHECK(!prices_.reasoning_prefix_bound ||
                     !session_.stale_from().has_value());
    last_ = view.messages;
  }

  void CheckRestart() const {
    Session again(Header(), counter_);
    for (const Record& record : records_) {
      CLERESTORY_CHECK(again.Replay(record).ok());
    }
    CLERESTORY_CHECK(again.ViewDigest(again.message_count()) ==
                     session_.ViewDigest(session_.message_count()));
    CLERESTORY_CHECK(again.view_tokens() == session_.view_tokens());
    CLERESTORY_CHECK(again.candidates() == session_.candidates());
  }

 private:
  static SessionHeader Header() {
    SessionHeader header;
    header.format = CLERESTORY_FUZZ_FORMAT;
    return header;
  }

  const Policy policy_;
  const TokenCounter& counter_;
  ModelPrices prices_ = BuiltInPrices().Of("m", 0);
  Session session_;
  std::vector<Record> records_;
  std::vector<Bytes> last_;
};

}  // namespace
}  // namespace clerestory

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  using namespace clerestory;
  const TokenCounter& counter = ClassTokenCounter();
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  const std::vector<absl::string_view> lines = absl::StrSplit(input, '\n');
  const absl::StatusOr<Policy> policy = ParsePolicy(lines.front());
  if (!policy.ok()) return 0;
  Driver driver(*policy, lines.front().size() % 2 == 0, counter);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].empty()) {
      driver.Serve();
    } else {
      driver.Append(lines[i]);
    }
  }
  driver.CheckRestart();
  return 0;
}
