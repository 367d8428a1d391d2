#include "runtime/chat_format_recognition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/status_matchers.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Small templates with what makes the published ones of a family one.
constexpr char kChatml[] =
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + "
    "m['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
constexpr char kLlama3[] =
    "{{ bos_token }}{% for m in messages %}{{ '<|start_header_id|>' + "
    "m['role'] + '<|end_header_id|>\\n\\n' + m['content'] | trim + "
    "'<|eot_id|>' }}{% endfor %}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}";
constexpr char kCommandR[] =
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'system' %}"
    "{{ '<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>' + m.content }}{% elif "
    "m.role == 'user' %}{{ '<|START_OF_TURN_TOKEN|><|USER_TOKEN|>' + "
    "m.content.strip() + '<|END_OF_TURN_TOKEN|>' }}{% endif %}{% endfor %}"
    "{{ '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' }}";

std::string Mistral(const std::string& open, const std::string& close) {
  return "{{ bos_token }}{% for m in messages %}{{ '" + open +
         "' + m['content'] + '" + close +
         "' }}{{ m['content']|trim + eos_token }}{% endfor %}";
}

std::string Replace(std::string text, const std::string& from,
                    const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

ChatFormat Recognise(const std::string& jinja) {
  const auto format = RecogniseChatFormat(jinja);
  EXPECT_THAT(format, IsOk());
  return format.value_or(ChatFormat{});
}

TEST(ChatFormatRecognitionTest, EachFamilyIsKnownByItsMarkers) {
  EXPECT_EQ(Recognise(kChatml).name, "chatml");
  EXPECT_EQ(Recognise(kLlama3).name, "llama3");
  EXPECT_EQ(Recognise(std::string(kLlama3) +
                      "{{ 'Cutting Knowledge Date: December 2023\\n' }}")
                .name,
            "llama3.1");
  EXPECT_EQ(Recognise(kCommandR).name, "command-r");
}

TEST(ChatFormatRecognitionTest, MistralsFormatsDifferInTheirSpaces) {
  EXPECT_EQ(Recognise(Mistral(" [INST] ", " [/INST]")).name, "mistral-v1");
  EXPECT_EQ(Recognise(Mistral("[INST] ", " [/INST]")).name, "mistral-v1");
  EXPECT_EQ(Recognise(Mistral("[INST] ", "[/INST]")).name, "mistral-v3");
  EXPECT_EQ(Recognise(Mistral("[INST]", "[/INST]")).name, "mistral-v3-tekken");
}

TEST(ChatFormatRecognitionTest, AnUnknownFamilyIsNamedByItsTokens) {
  EXPECT_THAT(RecogniseChatFormat("{{ '<|user|>\\n' + x + '<|assistant|>' }}"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("<|user|>, <|assistant|>"),
                             HasSubstr("<|im_start|>"))));
  EXPECT_THAT(
      RecogniseChatFormat("{{ messages[0]['content'] }}"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("got none")));
}

TEST(ChatFormatRecognitionTest, AForeignTokenMakesItAnotherFormat) {
  EXPECT_THAT(
      RecogniseChatFormat(Replace(kChatml, "'\\n' +", "'<|im_sep|>' +")),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("chatml"), HasSubstr("<|im_sep|>"))));
  // Llama 2, and Mistral's later tokenizers.
  for (const char* foreign : {"<<SYS>>", "[SYSTEM_PROMPT]", "[THINK]"}) {
    EXPECT_THAT(
        RecogniseChatFormat(Mistral("[INST]", "[/INST]") + foreign),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(foreign)));
  }
}

TEST(ChatFormatRecognitionTest, ForeignTokensAreShownInOneShortLine) {
  std::string jinja;
  for (int i = 0; i < 100; ++i)
    jinja += "<|\x01token\xFF" + std::to_string(i) + "|>";
  const auto format = RecogniseChatFormat(jinja);
  ASSERT_THAT(format, Not(IsOk()));
  const std::string message = MessageOf(format.status());
  EXPECT_THAT(message, HasSubstr("and 92 more"));
  EXPECT_EQ(message.find_first_of("\x01\xFF"), std::string::npos);
}

TEST(ChatFormatRecognitionTest, TheDefaultSystemMessageIsTheTemplates) {
  EXPECT_EQ(Recognise(kChatml).default_system, "");
  EXPECT_EQ(
      Recognise(std::string("{% if messages[0]['role'] != 'system' %}{{ "
                            "'<|im_start|>system\\nBe kind.<|im_end|>\\n' }}"
                            "{% endif %}") +
                kChatml)
          .default_system,
      "Be kind.");
  EXPECT_EQ(
      Recognise(std::string("{{ '<|start_header_id|>system<|end_header_id|>"
                            "\\n\\nBe brief.<|eot_id|>' }}") +
                kLlama3)
          .default_system,
      "Be brief.");
}

TEST(ChatFormatRecognitionTest, TwoDefaultSystemMessagesAreAnError) {
  EXPECT_THAT(
      RecogniseChatFormat(std::string("<|im_start|>system\nA<|im_end|>"
                                      "<|im_start|>system\nB<|im_end|>") +
                          kChatml),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"A\", \"B\"")));
}

TEST(ChatFormatRecognitionTest, TheAnswerBeginsAsTheTemplateBeginsIt) {
  EXPECT_EQ(Recognise(kChatml).answer, "<|im_start|>assistant\n");
  EXPECT_EQ(
      Recognise(Replace(kChatml, "assistant\\n", "assistant\\n<think>\\n"))
          .answer,
      "<|im_start|>assistant\n<think>\n");
}

TEST(ChatFormatRecognitionTest, TrimmingFollowsTheTemplate) {
  EXPECT_EQ(Recognise(kChatml).trim, ChatTrim::kNone);
  EXPECT_EQ(
      Recognise(Replace(kChatml, "m['content']", "m['content'] | trim")).trim,
      ChatTrim::kAll);
  EXPECT_EQ(Recognise(kLlama3).trim, ChatTrim::kAll);
  EXPECT_EQ(Recognise(Replace(kLlama3, " | trim", "")).trim, ChatTrim::kNone);
  EXPECT_EQ(Recognise(kCommandR).trim, ChatTrim::kAllButSystem);
  EXPECT_EQ(Recognise(Mistral("[INST] ", "[/INST]")).trim, ChatTrim::kAnswers);
}

TEST(ChatFormatRecognitionTest, BosIsWrittenIfTheTemplateWritesIt) {
  EXPECT_FALSE(Recognise(kChatml).bos);
  EXPECT_TRUE(Recognise(std::string("{{ bos_token }}") + kChatml).bos);
  EXPECT_TRUE(Recognise(kLlama3).bos);
  EXPECT_FALSE(Recognise(Replace(kLlama3, "bos_token", "''")).bos);
}

TEST(ChatFormatRecognitionTest, ThoughtsAreDroppedIfTheTemplateDropsThem) {
  EXPECT_FALSE(Recognise(kChatml).drop_thoughts);
  EXPECT_TRUE(
      Recognise(std::string(kChatml) + "{{ content.split('</think>')[-1] }}")
          .drop_thoughts);
}

TEST(ChatFormatRecognitionTest, ATemplateOverTheLimitIsRefused) {
  std::string jinja = kChatml;
  jinja.resize(kLargestChatTemplate, ' ');
  EXPECT_THAT(RecogniseChatFormat(jinja), IsOk());
  jinja += ' ';
  EXPECT_THAT(
      RecogniseChatFormat(jinja),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1048577")));
}

}  // namespace
}  // namespace coldstream
