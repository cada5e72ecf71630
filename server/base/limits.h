// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_BASE_LIMITS_H_
#define CLERESTORY_SERVER_BASE_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace clerestory {

// Every bound of the system, in one place, with what holds between them.

// The largest message: what Anthropic accepts as a whole request.
inline constexpr std::int64_t kMessageBytesMax = 32LL << 20;

// The largest gRPC request. Above the largest message by so much that a message
// of twice the limit is still refused by us, with a reason, and not by gRPC.
inline constexpr std::int64_t kRequestBytesMax = 96LL << 20;
static_assert(kRequestBytesMax > 2 * kMessageBytesMax + (16LL << 20));

// The most messages in one append, and in a session.
inline constexpr std::int64_t kAppendMessagesMax = 10'000;
inline constexpr std::int64_t kSessionMessagesMax = 100'000;
static_assert(kAppendMessagesMax <= kSessionMessagesMax);

// The most bytes of a session's history. It has to fit into memory to be
// viewed.
inline constexpr std::int64_t kSessionBytesMax = 1LL << 30;
static_assert(kMessageBytesMax <= kSessionBytesMax);

// The deepest nesting of a message: the walk is recursive.
inline constexpr int kJsonDepthMax = 512;

// The most JSON values of a message that are looked at one by one. A model's
// answer has fewer tokens; a message written to exhaust memory, "[0,0,0,...",
// has more.
inline constexpr std::size_t kJsonValuesMax = 1'000'000;

// Session ids, model names, tool names and call ids, in bytes.
inline constexpr std::int64_t kSessionIdBytesMax = 128;
inline constexpr std::int64_t kModelBytesMax = 128;
inline constexpr std::int64_t kPreambleDigestBytesMax = 128;
inline constexpr std::int64_t kToolNameBytesMax = 1024;
inline constexpr std::int64_t kCallIdBytesMax = 1024;

// Labels of a session, and the bytes of their keys and values.
inline constexpr std::int64_t kSessionLabelsMax = 16;
inline constexpr std::int64_t kLabelKeyBytesMax = 63;
inline constexpr std::int64_t kLabelValueBytesMax = 128;

// The most bytes of a tenant's document of policies.
inline constexpr std::int64_t kPolicyBytesMax = 1LL << 20;

// The most that a policy is tried on (CheckPolicy): bytes of messages, and
// observations that its calls look at, summed over the calls. Some seconds.
inline constexpr std::int64_t kTrialBytesMax = kRequestBytesMax;
inline constexpr std::int64_t kTrialObservationsMax = 5'000'000;

// Pages of list calls: the size when none is asked for, and the most.
inline constexpr std::int64_t kPageSizeDefault = 50;
inline constexpr std::int64_t kPageSizeMax = 1000;

// The most bytes of an observation in one ReadObservation, and when none is
// asked for.
inline constexpr std::int64_t kObservationPageBytesMax = 1LL << 20;

// The bytes of an observation in one RecallObservation when no limit is given:
// a model reads them. The most are those of ReadObservation.
inline constexpr std::int64_t kRecallPageBytesDefault = 32LL << 10;
static_assert(kRecallPageBytesDefault <= kObservationPageBytesMax);

// The most bytes of a resource that is pinned.
inline constexpr std::int64_t kPinResourceBytesMax = 4096;

// The most tokens that one message, call or report may be said to have: a sum
// of them over a session cannot overflow 64 bits, nor can the product of one
// with a price.
inline constexpr std::int64_t kTokensMax = 1LL << 31;

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_BASE_LIMITS_H_
