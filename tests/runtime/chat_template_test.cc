#include "runtime/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/runtime/small_vocabulary.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace coldstream {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Messages = std::vector<ChatMessage>;

constexpr ChatRole kSystem = ChatRole::kSystem;
constexpr ChatRole kUser = ChatRole::kUser;
constexpr ChatRole kAssistant = ChatRole::kAssistant;

ChatTemplate Named(const std::string& name) {
  const auto format = FindChatFormat(name);
  EXPECT_THAT(format, IsOk());
  return ChatTemplate(format.value_or(ChatFormat{}));
}

std::string Render(const ChatTemplate& chat, const Messages& messages) {
  const auto prompt = chat.Render(messages);
  EXPECT_THAT(prompt, IsOk());
  return prompt.ok() ? prompt->text() : "";
}

std::string Render(const std::string& name, const Messages& messages) {
  return Render(Named(name), messages);
}

const Messages kTalk = {{kSystem, " Be kind. "},
                        {kUser, " Hello\n"},
                        {kAssistant, "  Hi there\n"},
                        {kUser, "Who?\u3000"}};

// What Jinja makes of the published templates for these messages.
TEST(ChatTemplateTest, ChatmlWritesAConversationAsPublished) {
  EXPECT_EQ(Render("chatml", kTalk),
            "<|im_start|>system\n Be kind. <|im_end|>\n"
            "<|im_start|>user\n Hello\n<|im_end|>\n"
            "<|im_start|>assistant\n  Hi there\n<|im_end|>\n"
            "<|im_start|>user\nWho?\u3000<|im_end|>\n"
            "<|im_start|>assistant\n");
}

TEST(ChatTemplateTest, Llama3WritesAConversationAsPublished) {
  EXPECT_EQ(Render("llama3", kTalk),
            "<|start_header_id|>system<|end_header_id|>\n\nBe kind.<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nHello<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\nHi there"
            "<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nWho?<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n");
}

TEST(ChatTemplateTest, Llama31HasASystemTurnWithDatesInAnyCase) {
  const std::string head =
      "<|start_header_id|>system<|end_header_id|>\n\n"
      "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n";
  const std::string rest =
      "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHello<|eot_id|>"
      "<|start_header_id|>assistant<|end_header_id|>\n\n";
  EXPECT_EQ(Render("llama3.1", {{kUser, "Hello"}}), head + rest);
  EXPECT_EQ(Render("llama3.1", {{kSystem, " Be kind. "}, {kUser, "Hello"}}),
            head + "Be kind." + rest);
}

TEST(ChatTemplateTest, CommandRWritesAConversationAsPublished) {
  EXPECT_EQ(Render("command-r", kTalk),
            "<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|> Be kind. "
            "<|END_OF_TURN_TOKEN|>"
            "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>Hello<|END_OF_TURN_TOKEN|>"
            "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>Hi there"
            "<|END_OF_TURN_TOKEN|>"
            "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>Who?<|END_OF_TURN_TOKEN|>"
            "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>");
}

TEST(ChatTemplateTest, MistralV1TakesTheSystemMessageIntoTheFirstTurn) {
  EXPECT_EQ(Render("mistral-v1", kTalk),
            " [INST]  Be kind. \n\n Hello\n [/INST]   Hi there\n</s>"
            " [INST] Who?\u3000 [/INST]");
}

TEST(ChatTemplateTest, MistralV3TakesTheSystemMessageIntoTheLastTurn) {
  EXPECT_EQ(Render("mistral-v3", kTalk),
            "[INST]  Hello\n[/INST] Hi there</s>"
            "[INST]  Be kind. \n\nWho?\u3000[/INST]");
  EXPECT_EQ(Render("mistral-v3-tekken", kTalk),
            "[INST] Hello\n[/INST]  Hi there\n</s>"
            "[INST] Be kind. \n\nWho?\u3000[/INST]");
}

TEST(ChatTemplateTest, PlainWritesNamesAndStopsAtTheNextUser) {
  EXPECT_EQ(Render("plain", kTalk),
            "Be kind.\n\nUser: Hello\n\nAssistant: Hi there\n\nUser: Who?\n\n"
            "Assistant:");
  EXPECT_THAT(Named("plain").stop(), ElementsAre("\nUser:"));
}

TEST(ChatTemplateTest, BosIsNotInTheTextButSaid) {
  const Messages hello = {{kUser, "Hello"}};
  for (const char* name : {"llama3", "command-r", "mistral-v1", "mistral-v3"})
    EXPECT_TRUE(Named(name).Render(hello)->bos) << name;
  for (const char* name : {"chatml", "plain"})
    EXPECT_FALSE(Named(name).Render(hello)->bos) << name;
}

TEST(ChatTemplateTest, OnlyTheTemplatesOwnTextIsParsed) {
  const auto prompt = Named("chatml").Render(
      Messages{{kUser, "<|im_end|>"}, {kAssistant, ""}, {kUser, "b"}});
  ASSERT_THAT(prompt, IsOk());
  const auto ours = SpecialTokens::kParse;
  const auto theirs = SpecialTokens::kAsText;
  EXPECT_THAT(
      prompt->pieces,
      ElementsAre(ChatPiece{"<|im_start|>user\n", ours},
                  ChatPiece{"<|im_end|>", theirs},
                  ChatPiece{"<|im_end|>\n<|im_start|>assistant\n<|im_end|>\n"
                            "<|im_start|>user\n",
                            ours},
                  ChatPiece{"b", theirs},
                  ChatPiece{"<|im_end|>\n<|im_start|>assistant\n", ours}));
}

TEST(ChatTemplateTest, ADefaultSystemMessageIsUsedWhereThereIsNone) {
  ChatFormat format = *FindChatFormat("chatml");
  format.default_system = "Be brief.";
  const ChatTemplate chat(format);
  EXPECT_THAT(Render(chat, {{kUser, "a"}}),
              HasSubstr("<|im_start|>system\nBe brief.<|im_end|>\n"));
  EXPECT_THAT(Render(chat, {{kSystem, ""}, {kUser, "a"}}),
              ::testing::Not(HasSubstr("Be brief.")));
}

TEST(ChatTemplateTest, ThoughtsOfEarlierAnswersAreDroppedWhereTheFormatSaysSo) {
  ChatFormat format = *FindChatFormat("chatml");
  const Messages talk = {{kUser, "</think>a"},
                         {kAssistant, "<think>x</think>\n\nb"},
                         {kUser, "c"}};
  EXPECT_THAT(Render(ChatTemplate(format), talk),
              HasSubstr("assistant\n<think>x</think>\n\nb<|im_end|>"));
  format.drop_thoughts = true;
  EXPECT_THAT(Render(ChatTemplate(format), talk),
              AllOf(HasSubstr("user\n</think>a<|im_end|>"),
                    HasSubstr("assistant\nb<|im_end|>")));
}

TEST(ChatTemplateTest, TheIdentityDiffersWhereAPromptCould) {
  const ChatFormat plain = *FindChatFormat("chatml");
  const std::string identity = ChatTemplate(plain).Identity();
  EXPECT_THAT(identity, ::testing::StartsWith("chatml "));
  EXPECT_EQ(ChatTemplate(plain).Identity(), identity);
  std::vector<ChatFormat> changed(6, plain);
  changed[0].default_system = "a";
  changed[1].system_head = "a";
  changed[2].answer += "a";
  changed[3].trim = ChatTrim::kAll;
  changed[4].bos = true;
  changed[5].drop_thoughts = true;
  for (const ChatFormat& format : changed)
    EXPECT_NE(ChatTemplate(format).Identity(), identity);
}

TEST(ChatTemplateTest, NoMessageIsAnError) {
  for (const char* name : {"chatml", "mistral-v1"}) {
    EXPECT_THAT(Named(name).Render({}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("at least one")));
  }
}

TEST(ChatTemplateTest, ASystemMessageOutOfPlaceIsAnErrorOrATurn) {
  const Messages late = {{kUser, "a"}, {kSystem, "b"}};
  for (const char* name : {"command-r", "mistral-v1", "mistral-v3"}) {
    EXPECT_THAT(Named(name).Render(late),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("messages[1]"), HasSubstr(name))));
  }
  EXPECT_THAT(Render("chatml", late),
              HasSubstr("<|im_start|>system\nb<|im_end|>\n"));
}

TEST(ChatTemplateTest, AlternatingFormatsNameTheMessageOutOfTurn) {
  for (const char* name : {"command-r", "mistral-v1", "mistral-v3-tekken"}) {
    const ChatTemplate chat = Named(name);
    EXPECT_THAT(chat.Render(Messages{{kUser, "a"}, {kUser, "b"}}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("messages[1]"),
                               HasSubstr("expected assistant, got user"))));
    EXPECT_THAT(chat.Render(Messages{{kSystem, "s"}, {kAssistant, "b"}}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("messages[1]"),
                               HasSubstr("expected user, got assistant"))));
    for (const Messages& unfinished :
         {Messages{{kSystem, "s"}},
          Messages{{kUser, "a"}, {kAssistant, "b"}}}) {
      EXPECT_THAT(chat.Render(unfinished),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           HasSubstr("the last must be a user's")));
    }
  }
}

TEST(ChatTemplateTest, RolesAreThreeWords) {
  EXPECT_THAT(ParseChatRole("assistant"), IsOkAndHolds(kAssistant));
  EXPECT_THAT(
      ParseChatRole("tool\n"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("system, user or assistant, got \"tool\\n\"")));
  EXPECT_THAT(ParseChatRole(""), StatusIs(absl::StatusCode::kInvalidArgument));
}

// Create: where the format comes from.
class ChatTemplateCreateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    bpe_.Add("<|im_start|>", TokenType::kControl);
    bpe_.Add("<|im_end|>", TokenType::kControl);
  }
  StatusOr<ChatTemplate> Create(const std::string& chosen) {
    const Metadata metadata = bpe_.Build();
    const auto tokenizer = Tokenizer::Create(metadata);
    EXPECT_THAT(tokenizer, IsOk());
    return ChatTemplate::Create(metadata, **tokenizer, chosen);
  }
  void SetOwn(const std::string& jinja) {
    bpe_.Set("tokenizer.chat_template", jinja);
  }

  static constexpr char kOwn[] =
      "{{ '<|im_start|>system\\nMine.<|im_end|>\\n<|im_start|>assistant\\n' }}";

  SmallBpe bpe_{"gpt-2"};
};

TEST_F(ChatTemplateCreateTest, TheModelsOwnIsUsedUnlessOneIsChosen) {
  SetOwn(kOwn);
  const auto own = Create("");
  ASSERT_THAT(own, IsOk());
  EXPECT_THAT(Render(*own, {{kUser, "a"}}), HasSubstr("Mine."));
  const auto chosen = Create("plain");
  ASSERT_THAT(chosen, IsOk());
  EXPECT_EQ(chosen->name(), "plain");
}

TEST_F(ChatTemplateCreateTest, AModelWithoutATemplateWantsOneNamed) {
  EXPECT_THAT(Create(""), StatusIs(absl::StatusCode::kNotFound,
                                   AllOf(HasSubstr("tokenizer.chat_template"),
                                         HasSubstr("chatml, llama3"))));
  EXPECT_THAT(Create("chatml"), IsOk());
}

TEST_F(ChatTemplateCreateTest, AnUnknownOwnTemplateIsAnErrorNotAGuess) {
  SetOwn("{{ '<|user|>' + messages[0]['content'] }}");
  EXPECT_THAT(Create(""),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("tokenizer.chat_template"),
                             HasSubstr("<|user|>"), HasSubstr("plain"))));
}

TEST_F(ChatTemplateCreateTest, AChosenTemplateMustFitTheVocabulary) {
  EXPECT_THAT(
      Create("llama3"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("llama3"),
                     HasSubstr("no control token <|start_header_id|>"))));
  EXPECT_THAT(Create("plain"), IsOk());
}

TEST_F(ChatTemplateCreateTest, AFileIsReadAndRecognised) {
  const TempDir dir;
  const auto chat = Create(dir.Write("t.jinja", kOwn));
  ASSERT_THAT(chat, IsOk());
  EXPECT_THAT(Render(*chat, {{kUser, "a"}}), HasSubstr("Mine."));
  const std::string unknown = dir.Write("u.jinja", "{{ '<|user|>' }}");
  EXPECT_THAT(Create(unknown),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(unknown), HasSubstr("<|user|>"))));
}

TEST_F(ChatTemplateCreateTest, NeitherNameNorFileSaysWhichNamesThereAre) {
  for (const std::string& chosen : {std::string("mistral"), std::string("/")}) {
    EXPECT_THAT(Create(chosen),
                StatusIs(absl::StatusCode::kNotFound,
                         AllOf(HasSubstr("\"" + chosen + "\""),
                               HasSubstr("mistral-v1, mistral-v3"))));
  }
}

TEST_F(ChatTemplateCreateTest, AFileOverTheLimitIsRefused) {
  const TempDir dir;
  EXPECT_THAT(
      Create(dir.Write("t", std::string((1 << 20) + 5, ' '))),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("too large")));
}

}  // namespace
}  // namespace coldstream
