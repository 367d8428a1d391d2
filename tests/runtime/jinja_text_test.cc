#include "runtime/jinja_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace coldstream {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(JinjaTextTest, ControlTokensAreFoundOnceInOrder) {
  const JinjaText text(
      "{{ '<|b|>' + x + '[/INST]<|a_b:c|>' }}<|b|>[TOOL_CALLS]<<SYS>>");
  EXPECT_THAT(text.ControlTokens(), ElementsAre("<|b|>", "[/INST]", "<|a_b:c|>",
                                                "[TOOL_CALLS]", "<<SYS>>"));
}

TEST(JinjaTextTest, WideBarsMakeControlTokensToo) {
  EXPECT_THAT(JinjaText("<\uFF5CUser\uFF5C>x").ControlTokens(),
              ElementsAre("<\uFF5CUser\uFF5C>"));
}

TEST(JinjaTextTest, TokensPutTogetherAtRunTimeAndIndexesAreNoControlTokens) {
  EXPECT_THAT(JinjaText("{{ '<|' + message['role'] + '|>' }} messages[0] [a] "
                        "<|> <||> [A] [AB <tool_call> {%- if a <| b |> c %}")
                  .ControlTokens(),
              IsEmpty());
}

TEST(JinjaTextTest, CommentsAreNotPartOfIt) {
  const JinjaText text("a{# <|x|> #}b{#- y #}c{# open");
  EXPECT_THAT(text.ControlTokens(), IsEmpty());
  EXPECT_TRUE(text.Has("abc"));
  EXPECT_FALSE(text.Has("open"));
}

TEST(JinjaTextTest, ALineEndIsTheSameWrittenOutOrEscaped) {
  for (const char* jinja :
       {"{{ '<a>x\\ny<b>' }}", "{{ '<a>x\ny<b>' }}", "<a>x\ny<b>"}) {
    EXPECT_THAT(JinjaText(jinja).Between("<a>", "<b>"), ElementsAre("x\ny"))
        << jinja;
  }
}

TEST(JinjaTextTest, TextThatDependsOnTheMessagesIsNotFixed) {
  for (const char* jinja :
       {"{{ '<a>' + m['content'] + '<b>' }}", "{{ \"<a>\" + x + \"<b>\" }}",
        "<a>{{ content }}<b>", "<a>{% if x %}y{% endif %}<b>", "<a><b>", "<a>x",
        "<b>x<a>"}) {
    EXPECT_THAT(JinjaText(jinja).Between("<a>", "<b>"), IsEmpty()) << jinja;
  }
}

TEST(JinjaTextTest, QuotesInsideFixedTextStayAndEscapesGo) {
  EXPECT_THAT(JinjaText("{{ '<a>it\\'s \"it\"<b>' }}").Between("<a>", "<b>"),
              ElementsAre("it's \"it\""));
  EXPECT_THAT(JinjaText("<a>it's<b>").Between("<a>", "<b>"),
              ElementsAre("it's"));
}

TEST(JinjaTextTest, EveryDifferentTextBetweenIsThereOnce) {
  EXPECT_THAT(JinjaText("<a>1<b> <a>2<b> <a>1<b> {{'<a>' + c}} <a>3<b>")
                  .Between("<a>", "<b>"),
              ElementsAre("1", "2", "3"));
}

TEST(JinjaTextTest, AfterLastGoesToTheEndOfTheLiteral) {
  EXPECT_EQ(JinjaText("{{ '<a>1' }}{{ '<a><think>\\n' }}x").AfterLast("<a>"),
            "<think>\n");
  EXPECT_EQ(JinjaText("<a>{{ x }}").AfterLast("<a>"), "");
  EXPECT_EQ(JinjaText("<a>more").AfterLast("<a>"), "more");
  EXPECT_EQ(JinjaText("nothing").AfterLast("<a>"), "");
  EXPECT_EQ(JinjaText("nothing").AfterLast(""), "");
}

TEST(JinjaTextTest, TextCutAnywhereIsTakenAsItIs) {
  const std::string whole =
      "{# c #}{{ '<|a|>x\\n\\'y<|b|>' }}[INST]<<SYS>><\uFF5Cz\uFF5C>\\";
  for (size_t size = 0; size <= whole.size(); ++size) {
    const JinjaText text(whole.substr(0, size));
    EXPECT_LE(text.ControlTokens().size(), 5u);
    EXPECT_LE(text.Between("<|a|>", "<|b|>").size(), 1u);
    EXPECT_LE(text.AfterLast("<|b|>").size(), whole.size());
  }
}

}  // namespace
}  // namespace coldstream
