// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_BASE_REASON_H_
#define CLERESTORY_SERVER_BASE_REASON_H_

namespace clerestory {

// Why a call failed, for programs. Equal, value for value, to
// `clerestory.v1.ErrorReason`, whose comments are the error catalogue; a test
// holds the two together.
enum class Reason {
  kUnspecified = 0,
  kFieldInvalid = 1,
  kSessionNotFound = 2,
  kSessionExists = 3,
  kSessionClosed = 4,
  kAppendConflict = 5,
  kSequenceGap = 6,
  kMessageInvalid = 7,
  kMessageTooLarge = 8,
  kResultWithoutCall = 9,
  kObservationNotFound = 10,
  kCallTimeRefused = 11,
  kUsageInvalid = 12,
  kPageTokenInvalid = 13,
  kRecordCorrupt = 14,
  kStoreUnavailable = 15,
  kStoreFull = 16,
  kShuttingDown = 17,
  kInternal = 18,
  kPolicyInvalid = 19,
  kPolicyNotFound = 20,
  kPolicyConflict = 21,
  kTrialBusy = 22,
  kCallCancelled = 23,
};

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_BASE_REASON_H_
