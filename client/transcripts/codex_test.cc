// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0
