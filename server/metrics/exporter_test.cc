// Copyright The Clerestory Authors.
// SPDX-License-Identifier: Apache-2.0

#include "server/metrics/exporter.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/reason.h"
#include "server/metrics/catalogue.h"
#include "server/metrics/server_metrics.h"
#include "server/metrics/tenant_sums.h"
#include "tests/support/status_matchers.h"

namespace clerestory {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// What a server on this machine answers to GET `path`, headers included.
std::string Get(absl::string_view address, absl::string_view path) {
  std::uint32_t port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
  const int connection = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(connection, reinterpret_cast<sockaddr*>(&to), sizeof(to)),
            0);
  const std::string request = absl::StrCat("GET ", path, " HTTP/1.0\r\n\r\n");
  EXPECT_EQ(write(connection, request.data(), request.size()),
            static_cast<ssize_t>(request.size()));
  std::string answer;
  std::array<char, 4096> part = {};
  for (ssize_t size = 0;
       (size = read(connection, part.data(), part.size())) > 0;) {
    answer.append(part.data(), static_cast<std::size_t>(size));
  }
  close(connection);
  return answer;
}

class MetricsExporterTest : public ::testing::Test {
 protected:
  MetricsExporterTest() {
    auto started = MetricsExporter::Start("127.0.0.1:0", metrics_,
                                          [this] { ++refresh_count_; });
    EXPECT_THAT(started, IsOk());
    exporter_ = *std::move(started);
  }

  std::string Scrape() { return Get(exporter_->address(), "/metrics"); }

  ServerMetrics metrics_;
  int refresh_count_ = 0;
  std::unique_ptr<MetricsExporter> exporter_;
};

TEST_F(MetricsExporterTest, ServesTheCatalogueAsText) {
  metrics_.Set(Metric::kFileReloads, "refused", 3);
  const std::string text = Scrape();
  EXPECT_THAT(text, StartsWith("HTTP/1.1 200 OK"));
  EXPECT_THAT(text, HasSubstr(absl::StrCat(
                        "# HELP clerestory_file_reloads_total ",
                        DefinitionOf(Metric::kFileReloads).help, "\n")));
  EXPECT_THAT(text, HasSubstr("# TYPE clerestory_file_reloads_total counter\n"
                              "clerestory_file_reloads_total{result="
                              "\"accepted\"} 0\n"
                              "clerestory_file_reloads_total{result="
                              "\"refused\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE clerestory_cached_sessions gauge\n"));
  // What has no series is not there.
  EXPECT_THAT(text, Not(HasSubstr("clerestory_breaker_state")));
}

TEST_F(MetricsExporterTest, ValuesAreInBaseUnits) {
  TenantSums sums;
  sums[TenantSum::kViewCost] = 1'250'000'000'000;
  sums[TenantSum::kViewTokens] = std::int64_t{1} << 53;
  metrics_.AddToTenant("t", sums);
  metrics_.Set(Metric::kFilesLastSuccess, "", 1'790'000'000'250'000);
  metrics_.DeclareRpc({.service = "s", .method = "m"});
  metrics_.RpcHandled("m", absl::StatusCode::kOk, 300);
  const std::string text = Scrape();
  EXPECT_THAT(text,
              HasSubstr("clerestory_view_cost_usd_total{tenant=\"t\"} 1.25\n"));
  EXPECT_THAT(text, HasSubstr("clerestory_view_tokens_total{tenant=\"t\"} "
                              "9007199254740992\n"));
  EXPECT_THAT(text, HasSubstr("clerestory_files_last_success_timestamp_seconds "
                              "1790000000.25\n"));
  const std::string labels =
      "grpc_type=\"unary\",grpc_service=\"s\",grpc_method=\"m\"";
  EXPECT_THAT(text, HasSubstr(absl::StrCat(
                        "grpc_server_handling_seconds_bucket{", labels,
                        ",le=\"0.0002\"} 0\n"
                        "grpc_server_handling_seconds_bucket{",
                        labels, ",le=\"0.0005\"} 1\n")));
  EXPECT_THAT(text, HasSubstr(absl::StrCat(labels, ",le=\"+Inf\"} 1\n")));
  EXPECT_THAT(text, HasSubstr(absl::StrCat("grpc_server_handling_seconds_sum{",
                                           labels, "} 0.0003\n")));
}

TEST_F(MetricsExporterTest, LabelsFromOutsideCannotForgeLines) {
  metrics_.NameTenant("t\"} 1\nforged{a=\"\\", {});
  EXPECT_THAT(Scrape(), Not(HasSubstr("\nforged")));
}

TEST_F(MetricsExporterTest, WhatIsKnownElsewhereIsAskedForBeforeEachAnswer) {
  Scrape();
  Scrape();
  EXPECT_EQ(refresh_count_, 2);
}

TEST_F(MetricsExporterTest, OtherPathsAreNotThere) {
  for (const char* path : {"/", "/etc/passwd", "/../../etc/passwd"}) {
    EXPECT_THAT(Get(exporter_->address(), path), HasSubstr(" 404 Not Found"))
        << path;
  }
}

TEST_F(MetricsExporterTest, AnAddressThatIsTakenIsAnErrorOfTheSetting) {
  const auto second =
      MetricsExporter::Start(exporter_->address(), metrics_, [] {});
  EXPECT_THAT(second, FailsWith(absl::StatusCode::kInvalidArgument,
                                Reason::kFieldInvalid));
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr("metrics_address: cannot listen"));
}

}  // namespace
}  // namespace clerestory
