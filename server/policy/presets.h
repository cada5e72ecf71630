// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_POLICY_PRESETS_H_
#define CLERESTORY_SERVER_POLICY_PRESETS_H_

#include <span>
#include <string>

#include "absl/strings/string_view.h"
#include "server/policy/policy.h"

namespace clerestory {

// A policy by name: what another system does by default, as near as a policy
// comes to it, so that it can be compared with.
struct Preset {
  absl::string_view name;
  Policy policy;
  // Where its settings are from: repository, version and file, or document and
  // date.
  absl::string_view source;
  // What the system does that the policy does not.
  absl::string_view difference;
};

// All of them; live as long as the program. May be called from any thread.
std::span<const Preset> Presets();

// Their names, with commas between them.
std::string PresetNames();

// The one called `name`, or null.
const Preset* FindPreset(absl::string_view name);

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_POLICY_PRESETS_H_
