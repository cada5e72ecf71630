// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/engine/session_cache.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <latch>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/reason.h"
#include "server/base/status.h"
#include "server/base/time.h"
#include "server/engine/session_engine.h"
#include "server/model/message.h"
#include "server/model/record.h"
#include "server/policy/policy.h"
#include "server/store/memory/memory_store.h"
#include "tests/support/messages.h"
#include "tests/support/scripted_session.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

constexpr Format kFormat = Format::kAnthropicMessages;
constexpr std::int64_t kLargeCache = 1 << 30;
const SessionKey kKey = {.tenant = "t", .session = "s"};

SessionKey KeyOf(absl::string_view session) {
  return {.tenant = "t", .session = std::string(session)};
}

// Uses the session, which takes `bytes` then.
void Use(SessionCache& cache, absl::string_view session, std::int64_t bytes) {
  const SessionCache::Lease lease = cache.Take(KeyOf(session));
  lease.entry().session_bytes = bytes;
}

std::int64_t BytesOf(SessionCache& cache, absl::string_view session) {
  const SessionCache::Lease lease = cache.Take(KeyOf(session));
  return lease.entry().session_bytes;
}

TEST(SessionCacheTest, BytesAreTheSumOfWhatSessionsTakeNow) {
  SessionCache cache(100);
  Use(cache, "a", 30);
  Use(cache, "b", 40);
  EXPECT_EQ(cache.bytes(), 70);
  Use(cache, "a", 10);
  EXPECT_EQ(cache.bytes(), 50);
  EXPECT_EQ(cache.size(), 2);
}

TEST(SessionCacheTest, TheLeastRecentlyUsedSessionsAreEvictedFirst) {
  SessionCache cache(100);
  Use(cache, "a", 40);
  Use(cache, "b", 40);
  Use(cache, "a", 40);
  Use(cache, "c", 40);
  EXPECT_EQ(cache.bytes(), 80);
  EXPECT_EQ(BytesOf(cache, "a"), 40);
  EXPECT_EQ(BytesOf(cache, "b"), 0);
  EXPECT_EQ(BytesOf(cache, "c"), 40);
}

TEST(SessionCacheTest, SessionsInUseAreNeverEvicted) {
  SessionCache cache(0);
  {
    const SessionCache::Lease lease = cache.Take(KeyOf("a"));
    Use(cache, "a", 40);
    Use(cache, "b", 40);
    EXPECT_EQ(cache.size(), 1);
    EXPECT_EQ(cache.bytes(), 40);
    EXPECT_EQ(BytesOf(cache, "a"), 40);
  }
  EXPECT_EQ(cache.size(), 0);
  EXPECT_EQ(cache.bytes(), 0);
}

TEST(SessionCacheTest, LeasesOnOneSessionShareItsEntry) {
  SessionCache cache(0);
  const SessionCache::Lease first = cache.Take(KeyOf("a"));
  const SessionCache::Lease second = cache.Take(KeyOf("a"));
  EXPECT_EQ(&first.entry(), &second.entry());
}

SessionHeader Header() {
  SessionHeader header;
  header.key = kKey;
  header.format = kFormat;
  header.model = "m";
  return header;
}

AppendRequest At(std::optional<std::int64_t> expected_sequence,
                 std::vector<Bytes> messages) {
  AppendRequest request;
  request.now = 1;
  request.expected_sequence = expected_sequence;
  request.messages = std::move(messages);
  return request;
}

Bytes User(absl::string_view text) {
  return ToBytes(UserMessage(kFormat, text));
}

std::vector<Bytes> Turn(absl::string_view id, std::size_t tokens) {
  return {
      ToBytes(AssistantMessage(kFormat, "t", {{.id = std::string(id)}})),
      ToBytes(ResultMessages(kFormat, {{.id = std::string(id),
                                        .content = LiteralOf(tokens)}})[0])};
}

TEST(EngineCacheTest, UnknownSessionsLeaveNothingBehind) {
  MemoryStore store;
  SessionEngine engine(store, CharacterCounter(), {});
  const auto not_found =
      FailsWith(absl::StatusCode::kNotFound, Reason::kSessionNotFound);
  EXPECT_THAT(engine.GetSession(kKey), not_found);
  EXPECT_THAT(engine.AppendMessages(kKey, At({}, {User("a")})), not_found);
  EXPECT_THAT(engine.DeleteSession(kKey), not_found);
  EXPECT_EQ(engine.cache().size(), 0);
  EXPECT_EQ(engine.cache().bytes(), 0);
}

TEST(EngineCacheTest, DeletedSessionsLeaveNothingBehind) {
  MemoryStore store;
  SessionEngine engine(store, CharacterCounter(), {});
  ASSERT_THAT(engine.CreateSession(Header()), IsOk());
  ASSERT_THAT(engine.AppendMessages(kKey, At({}, {User("a")})), IsOk());
  EXPECT_EQ(engine.cache().size(), 1);
  EXPECT_GT(engine.cache().bytes(), 0);
  ASSERT_THAT(engine.DeleteSession(kKey), IsOk());
  EXPECT_EQ(engine.cache().size(), 0);
  EXPECT_EQ(engine.cache().bytes(), 0);
}

std::string Text(const BuiltView& built) {
  const View& view = built.view;
  return absl::StrCat(absl::StrJoin(Texts(view.messages), "\n"), "\n",
                      view.whole.digest.ToHex(), " ", view.whole.token_count,
                      " ", view.stable.digest.ToHex(), " ",
                      view.stable.message_count, " ", view.stable.token_count,
                      " ", view.frontier, " ",
                      absl::StrJoin(view.cache_marks, ","), " ",
                      built.masked_count, " ", built.saved_tokens, " ",
                      built.over_window_tokens, " ", built.policy_digest, "\n");
}

// What is answered in a session of 60 turns, and what is known of it then.
std::vector<std::string> RunSession(const Policy& policy,
                                    std::int64_t cache_bytes_max,
                                    std::int64_t& break_count) {
  MemoryStore store;
  SessionEngine engine(store, CharacterCounter(),
                       {.policy = policy, .cache_bytes_max = cache_bytes_max});
  EXPECT_THAT(engine.CreateSession(Header()), IsOk());
  std::vector<std::string> answers;
  for (int turn = 0; turn < 60; ++turn) {
    BuildViewRequest request;
    request.append =
        At(2 * turn, Turn(absl::StrCat("c", turn),
                          100 + static_cast<std::size_t>(531 * turn % 1'900)));
    // Any cache is lost in the pause before turn 40.
    request.append.now =
        (turn * 20 + (turn < 40 ? 0 : 100'000)) * kMicrosPerSecond;
    request.preamble_tokens = 500;
    Usage usage;
    usage.output = turn;
    if (turn % 3 == 0) request.usage = usage;
    for (const bool dry_run : {true, false, false}) {
      request.dry_run = dry_run;
      const auto built = engine.BuildView(kKey, request);
      EXPECT_THAT(built, IsOk());
      if (!built.ok()) return answers;
      answers.push_back(Text(*built));
    }
    EXPECT_EQ(engine.cache().size(), cache_bytes_max == 0 ? 0 : 1);
  }
  const auto summary = engine.GetSession(kKey);
  EXPECT_THAT(summary, IsOk());
  if (!summary.ok()) return answers;
  answers.push_back(LedgerText(summary->ledger));
  break_count = 0;
  for (const std::int64_t breaks : summary->ledger.breaks) {
    break_count += breaks;
  }
  return answers;
}

TEST(EngineCacheTest, ASessionThatIsAlwaysReloadedIsAnsweredInTheSameWay) {
  for (const absl::string_view text : {"block,keep_observations=3,block_size=5",
                                       "adaptive,keep_observations=3"}) {
    SCOPED_TRACE(text);
    const auto policy = ParsePolicy(text);
    ASSERT_THAT(policy, IsOk());
    std::int64_t cached_breaks = 0;
    std::int64_t reloaded_breaks = 0;
    const std::vector<std::string> cached =
        RunSession(*policy, kLargeCache, cached_breaks);
    const std::vector<std::string> reloaded =
        RunSession(*policy, 0, reloaded_breaks);
    EXPECT_EQ(cached.size(), 181);
    EXPECT_EQ(cached, reloaded);
    EXPECT_GE(cached_breaks, 2);
    EXPECT_EQ(cached_breaks, reloaded_breaks);
  }
}

// Runs `work(0)` to `work(count - 1)` at once, each on a thread of its own.
template <typename Work>
void RunThreads(int count, const Work& work) {
  std::latch start(count);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&start, &work, i] {
      start.arrive_and_wait();
      work(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

std::vector<std::string> HistoryOf(SessionEngine& engine) {
  std::vector<std::string> texts;
  const auto history = engine.ReadHistory(kKey, 0);
  EXPECT_THAT(history, IsOk());
  if (!history.ok()) return texts;
  for (const HistoryEntry& entry : *history) texts.push_back(*entry.message);
  return texts;
}

TEST(EngineThreadsTest, ExactlyOneWriterWinsEachPosition) {
  constexpr int kWriters = 8;
  constexpr std::size_t kMessages = 20;
  for (const std::int64_t cache_bytes_max : {kLargeCache, std::int64_t{0}}) {
    SCOPED_TRACE(cache_bytes_max);
    MemoryStore store;
    SessionEngine engine(store, CharacterCounter(),
                         {.policy = {}, .cache_bytes_max = cache_bytes_max});
    ASSERT_THAT(engine.CreateSession(Header()), IsOk());
    // What each writer was acknowledged, by position.
    std::vector<std::map<std::int64_t, std::string>> won(kWriters);
    RunThreads(kWriters, [&](int writer) {
      auto& mine = won[static_cast<std::size_t>(writer)];
      std::int64_t next = 0;
      while (mine.size() < kMessages) {
        const Bytes message = User(absl::StrCat(writer, ".", mine.size()));
        const auto appended = engine.AppendMessages(kKey, At(next, {message}));
        if (appended.ok()) {
          EXPECT_EQ(*appended, next + 1);
          mine[next] = *message;
          next = *appended;
          continue;
        }
        EXPECT_THAT(appended, FailsWith(absl::StatusCode::kAborted,
                                        Reason::kAppendConflict));
        if (!absl::SimpleAtoi(MetadataOf(appended.status(), "next_sequence"),
                              &next)) {
          ADD_FAILURE() << "no next_sequence";
          return;
        }
      }
    });
    std::map<std::int64_t, std::string> all;
    for (const auto& mine : won) all.insert(mine.begin(), mine.end());
    const std::vector<std::string> history = HistoryOf(engine);
    ASSERT_EQ(history.size(), kWriters * kMessages);
    ASSERT_EQ(all.size(), history.size());
    for (std::size_t i = 0; i < history.size(); ++i) {
      EXPECT_EQ(history[i], all[static_cast<std::int64_t>(i)]) << i;
    }
    EXPECT_EQ(engine.cache().size(), cache_bytes_max == 0 ? 0 : 1);
  }
}

TEST(EngineThreadsTest, ViewsThatRaceWithAppendsShowTheHistoryUpToAnAppend) {
  constexpr int kThreads = 6;
  constexpr int kViewers = 3;
  MemoryStore store;
  SessionEngine engine(store, CharacterCounter(), {});
  ASSERT_THAT(engine.CreateSession(Header()), IsOk());
  std::vector<std::vector<std::vector<Bytes>>> views(kViewers);
  RunThreads(kThreads, [&](int thread) {
    for (int i = 0; i < 20; ++i) {
      if (thread >= kViewers) {
        EXPECT_THAT(engine.AppendMessages(
                        kKey, At({}, Turn(absl::StrCat(thread, ".", i), 4))),
                    IsOk());
        continue;
      }
      BuildViewRequest request;
      request.append = At({}, {});
      const auto built = engine.BuildView(kKey, request);
      EXPECT_THAT(built, IsOk());
      if (!built.ok()) return;
      views[static_cast<std::size_t>(thread)].push_back(built->view.messages);
    }
  });
  const std::vector<std::string> history = HistoryOf(engine);
  EXPECT_EQ(history.size(), 2 * 20 * (kThreads - kViewers));
  for (const auto& seen : views) {
    std::size_t last = 0;
    for (const std::vector<Bytes>& view : seen) {
      EXPECT_EQ(view.size() % 2, 0);
      EXPECT_GE(view.size(), last);
      ASSERT_LE(view.size(), history.size());
      last = view.size();
      for (std::size_t i = 0; i < last; ++i) EXPECT_EQ(*view[i], history[i]);
    }
  }
}

TEST(EngineThreadsTest, AppendsThatRaceWithDeletesFindTheSessionOrNone) {
  constexpr int kAppenders = 4;
  MemoryStore store;
  SessionEngine engine(store, CharacterCounter(), {});
  ASSERT_THAT(engine.CreateSession(Header()), IsOk());
  std::atomic<bool> is_done = false;
  RunThreads(kAppenders + 1, [&](int thread) {
    if (thread == kAppenders) {
      for (int i = 0; i < 100; ++i) {
        EXPECT_THAT(engine.DeleteSession(kKey), IsOk());
        EXPECT_THAT(engine.CreateSession(Header()), IsOk());
      }
      is_done = true;
      return;
    }
    for (int i = 0; !is_done; ++i) {
      const auto appended = engine.AppendMessages(
          kKey, At({}, {User(absl::StrCat(thread, ".", i))}));
      if (appended.ok()) continue;
      EXPECT_THAT(appended, FailsWith(absl::StatusCode::kNotFound,
                                      Reason::kSessionNotFound));
    }
  });
  SessionEngine restarted(store, CharacterCounter(), {});
  EXPECT_EQ(HistoryOf(engine), HistoryOf(restarted));
  EXPECT_THAT(engine.DeleteSession(kKey), IsOk());
  EXPECT_EQ(engine.cache().size(), 0);
  EXPECT_EQ(engine.cache().bytes(), 0);
}

}  // namespace
}  // namespace clerestory
