// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CLERESTORY_SERVER_TOKENS_CLASS_TOKEN_COUNTER_H_
#define CLERESTORY_SERVER_TOKENS_CLASS_TOKEN_COUNTER_H_

#include "server/tokens/token_counter.h"

namespace clerestory {

// The default estimator, which lives for ever. What a text costs follows from
// the kinds and lengths of its words, numbers, marks, indentation and
// characters, so prose, code, JSON, listings, base64, hexadecimal and other
// scripts each get their own ratio, also where they are mixed in one text.
//
// CountText estimates the tokens of OpenAI's o200k_base. Other vocabularies
// differ from it by a factor that reported usage tells. Text in `kJsonEscaped`
// counts exactly as the text that it stands for. One pass, no allocation.
//
// CountImage is ImageTokens (image_tokens.h).
const TokenCounter& ClassTokenCounter();

}  // namespace clerestory

#endif  // CLERESTORY_SERVER_TOKENS_CLASS_TOKEN_COUNTER_H_
