#include "tools/batch_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tools/batch_result.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A record as batch_result.h writes them.
std::string Record(int64_t line, const std::string& id, bool failed = false) {
  if (failed) {
    return BatchErrorLine({line, id},
                          {.code = "invalid_value", .message = "bad \"x\""});
  }
  RequestResult result;
  result.generated.text = "text of\n" + id;
  return BatchAnswerLine({line, id}, {}, result,
                         {.tokenizer = nullptr, .name = "m"});
}

class BatchOutputTest : public ::testing::Test {
 protected:
  StatusOr<std::unique_ptr<BatchOutput>> Open() {
    return BatchOutput::Open(options_);
  }
  // An output with these contents that was begun with options_.job.
  void Begin(const std::string& contents) {
    dir_.Write("out", contents);
    ASSERT_THAT(WriteBatchJob(path_, options_.job), IsOk());
  }

  TempDir dir_;
  const std::string path_ = dir_.Path("out");
  BatchOutputOptions options_ = {
      .path = path_,
      .input = dir_.Write("in", "x"),
      .job = {.model = "m1", .options = "o1", .input = "i1"}};
};

TEST_F(BatchOutputTest, ANewOneIsEmptyWithAJobFile) {
  auto output = *Open();
  EXPECT_EQ(output->done(), 0);
  EXPECT_THAT(output->IsDone(1, "a"), IsOkAndHolds(false));
  const auto job = ReadBatchJob(path_);
  ASSERT_THAT(job, IsOk());
  EXPECT_EQ(job->model, "m1");
  EXPECT_EQ(job->options, "o1");
  EXPECT_EQ(job->input, "i1");
}

TEST_F(BatchOutputTest, WhatWasAppendedIsDoneTheNextTime) {
  const std::string records =
      Record(1, "a") + Record(7, "b", true) + Record(3, "");
  {
    const auto output = *Open();
    EXPECT_THAT(output->Append(Record(1, "a")), IsOk());
    EXPECT_THAT(output->Append(Record(7, "b", true)), IsOk());
    EXPECT_THAT(output->Append(Record(3, "")), IsOk());
    EXPECT_THAT(output->Sync(), IsOk());
  }
  const auto output = *Open();
  EXPECT_EQ(Contents(path_), records);
  EXPECT_EQ(output->done(), 3);
  EXPECT_EQ(output->failed(), 1);
  EXPECT_EQ(output->torn_bytes(), 0u);
  EXPECT_THAT(output->IsDone(1, "a"), IsOkAndHolds(true));
  EXPECT_THAT(output->IsDone(2, "a"), IsOkAndHolds(false));
  EXPECT_THAT(output->IsDone(3, ""), IsOkAndHolds(true));
  EXPECT_THAT(output->IsDone(7, "b"), IsOkAndHolds(true));
}

TEST_F(BatchOutputTest, ARecordOfAnotherIdMeansThatTheInputWasChanged) {
  Begin(Record(1, "a"));
  EXPECT_THAT((*Open())->IsDone(1, "z"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("line 1"), HasSubstr("\"z\""))));
}

TEST_F(BatchOutputTest, AnythingElseThatItWasBegunWithIsRefusedInOneLine) {
  Begin(Record(1, "a"));
  for (std::string BatchJob::*part :
       {&BatchJob::model, &BatchJob::options, &BatchJob::input}) {
    BatchOutputOptions changed = options_;
    const std::string was = changed.job.*part;
    changed.job.*part = "new\nthing";
    const auto output = BatchOutput::Open(changed);
    EXPECT_THAT(output, StatusIs(absl::StatusCode::kFailedPrecondition,
                                 AllOf(HasSubstr(path_), HasSubstr(was),
                                       HasSubstr("new\\nthing"),
                                       Not(HasSubstr("\n")))));
  }
  EXPECT_EQ(Contents(path_), Record(1, "a"));
  EXPECT_THAT(Open(), IsOk());
}

TEST_F(BatchOutputTest, AnEmptyOneMayBeBegunAnew) {
  Begin("");
  options_.job.model = "m2";
  ASSERT_THAT(Open(), IsOk());
  EXPECT_EQ(ReadBatchJob(path_)->model, "m2");
}

TEST_F(BatchOutputTest, AFileThatIsNoBatchOfOursIsLeftAlone) {
  const std::string foreign = "something of mine, without a line end";
  dir_.Write("out", foreign);
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kFailedPrecondition,
                               HasSubstr("no batch of ours")));
  EXPECT_EQ(Contents(path_), foreign);
  EXPECT_FALSE(std::filesystem::exists(BatchJobPath(path_)));
}

TEST_F(BatchOutputTest, ADamagedJobFileIsAnErrorThatNamesIt) {
  Begin(Record(1, "a"));
  const std::string job = Contents(BatchJobPath(path_));
  for (const std::string& damaged :
       {std::string(), job.substr(0, job.size() / 2), std::string("[1]"),
        std::string(R"({"format": 3})"),
        std::string(R"({"format": "coldstream-batch-job", "version": 1})")}) {
    dir_.Write("out.job", damaged);
    EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kDataLoss,
                                 HasSubstr(BatchJobPath(path_))))
        << damaged;
  }
  dir_.Write("out.job", R"({"format": "coldstream-batch-job", "version": 2})");
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kFailedPrecondition,
                               HasSubstr("expected version 1, got 2")));
}

// What a kill may leave: the output cut at every byte.
TEST_F(BatchOutputTest, CutAnywhereTheWholeRecordsAreKept) {
  const std::string first = Record(1, "a");
  const std::string second = Record(2, "b", true);
  const std::string third = Record(3, "\u00E9\n");
  const std::string whole = first + second + third;
  Begin("");
  for (size_t size = 0; size <= whole.size(); ++size) {
    dir_.Write("out", whole.substr(0, size));
    {
      const auto output = Open();
      ASSERT_THAT(output, IsOk()) << size;
      const size_t ends[] = {0, first.size(), first.size() + second.size(),
                             whole.size()};
      int64_t kept = 0;
      while (kept < 3 && ends[kept + 1] <= size) ++kept;
      ASSERT_EQ((*output)->done(), kept) << size;
      ASSERT_EQ((*output)->failed(), kept >= 2 ? 1 : 0) << size;
      ASSERT_EQ((*output)->torn_bytes(), size - ends[kept]) << size;
      ASSERT_EQ(Contents(path_), whole.substr(0, ends[kept])) << size;
      ASSERT_THAT((*output)->Append(Record(9, "z")), IsOk());
    }
    ASSERT_EQ((*Open())->torn_bytes(), 0u) << size;
  }
}

// And what a power cut may: a line end, but not the bytes before it.
TEST_F(BatchOutputTest, ALastLineThatIsNoJsonIsTornToo) {
  for (const std::string& torn :
       {std::string(500, '\0'), std::string(500, '\0') + "\n",
        Record(2, "b").substr(0, 40) + "\n", std::string("\n"),
        std::string("\xFF\xFE\n")}) {
    Begin(Record(1, "a") + torn);
    const auto output = Open();
    ASSERT_THAT(output, IsOk()) << torn;
    EXPECT_EQ((*output)->done(), 1);
    EXPECT_EQ(Contents(path_), Record(1, "a"));
  }
}

TEST_F(BatchOutputTest, DamageInTheMiddleIsAnErrorWithLineAndOffset) {
  const std::string contents = Record(1, "a") + "garbage\n" + Record(2, "b");
  Begin(contents);
  EXPECT_THAT(
      Open(),
      StatusIs(
          absl::StatusCode::kDataLoss,
          AllOf(HasSubstr("line 2"),
                HasSubstr("byte " + std::to_string(Record(1, "a").size())))));
  EXPECT_EQ(Contents(path_), contents);
}

TEST_F(BatchOutputTest, JsonThatIsNoRecordIsAnErrorAlsoInTheLastLine) {
  for (const char* foreign :
       {"{}\n", "[]\n", "7\n",
        R"({"id":"batch_req_0","error":null})"
        "\n",
        R"({"id":"x","custom_id":"a","response":null,"error":null})"
        "\n",
        R"({"response":{"id":"batch_req_2","error":null}})"
        "\n",
        R"({"id":"batch_req_2","custom_id":"b"})"
        "\n"}) {
    Begin(Record(1, "a") + foreign);
    EXPECT_THAT(Open(),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("line 2")))
        << foreign;
  }
}

TEST_F(BatchOutputTest, TwoRecordsOfOneLineAreAnError) {
  Begin(Record(1, "a") + Record(2, "b") + Record(1, "a"));
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kDataLoss,
                               HasSubstr("a second record of line 1")));
}

TEST_F(BatchOutputTest, TwoJobsCannotHaveItAtOnce) {
  const auto output = *Open();
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kFailedPrecondition,
                               HasSubstr("another process")));
}

TEST_F(BatchOutputTest, TheInputIsNeverTheOutput) {
  options_.input = dir_.Write("out", "x");
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("another file than the input")));
  options_.input = dir_.Write("out.job", "x");
  EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("out.job")));
  EXPECT_EQ(Contents(path_), "x");
}

TEST_F(BatchOutputTest, WhatIsNoFileHasNoJob) {
  options_.path = "/dev/null";
  const auto output = Open();
  ASSERT_THAT(output, IsOk());
  EXPECT_THAT((*output)->Append("a\n"), IsOk());
  EXPECT_FALSE(std::filesystem::exists("/dev/null.job"));
}

}  // namespace
}  // namespace coldstream
