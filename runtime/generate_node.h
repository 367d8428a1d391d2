// An engine as a node of a user's oneTBB flow graph.
//
//   flow::graph graph;
//   GenerateNode<Row> generate(graph, engine.get());
//   flow::function_node<GenerateNode<Row>::Output, flow::continue_msg,
//                       flow::rejecting> write(graph, flow::serial, ...);
//   flow::make_edge(source, generate.input());   // {row, Request}
//   flow::make_edge(generate.output(), write);   // {row, RequestResult}
//   source.activate();
//   graph.wait_for_all();   // every result delivered, once
//
// Back-pressure: no more requests than `in_flight` are between input and
// output. The next one is taken when a result is: a successor that rejects
// (flow::rejecting) while it is busy thus slows the engine and the source down;
// one that queues takes everything. Nothing waits inside the graph's threads.
// The predecessor must be able to keep a message that is not taken yet
// (input_node, queue_node and other buffers; a function_node drops it).
// A request that is refused comes out at once, with the reason in its result.
// Results come in the order in which requests end.
// Thread-safety: as oneTBB's nodes. Lifetime: engine and graph outlive the
// node; wait for the graph before the node goes.
#ifndef COLDSTREAM_RUNTIME_GENERATE_NODE_H_
#define COLDSTREAM_RUNTIME_GENERATE_NODE_H_

#include <oneapi/tbb/flow_graph.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

#include "runtime/engine.h"
#include "runtime/request.h"

namespace coldstream {

// `Row`: what belongs to a request and goes with it; copyable.
template <typename Row>
class GenerateNode {
 public:
  using Input = std::pair<Row, Request>;
  using Output = std::pair<Row, RequestResult>;

  // At most the engine's queue_length requests; 0: as many.
  GenerateNode(oneapi::tbb::flow::graph& graph, Engine* engine,
               int64_t in_flight = 0)
      : graph_(graph),
        engine_(*engine),
        tokens_(graph),
        admit_(graph),
        submit_(graph, oneapi::tbb::flow::unlimited,
                [this](const Admitted& admitted) {
                  Submit(std::get<0>(admitted));
                  return oneapi::tbb::flow::continue_msg();
                }),
        ended_(graph, [this](oneapi::tbb::flow_control& control) {
          return TakeEnded(&control);
        }) {
    namespace flow = oneapi::tbb::flow;
    flow::make_edge(tokens_, flow::input_port<1>(admit_));
    flow::make_edge(admit_, submit_);
    const int64_t most = engine->options().queue_length;
    in_flight = in_flight == 0 ? most : std::clamp<int64_t>(in_flight, 1, most);
    for (int64_t i = 0; i < in_flight; ++i) tokens_.try_put(0);
  }
  GenerateNode(const GenerateNode&) = delete;
  GenerateNode& operator=(const GenerateNode&) = delete;

  oneapi::tbb::flow::receiver<Input>& input() {
    return oneapi::tbb::flow::input_port<0>(admit_);
  }
  oneapi::tbb::flow::sender<Output>& output() { return ended_; }

 private:
  using Admitted = std::tuple<Input, int>;

  // The queue has room: no more are in flight than it is long.
  void Submit(const Input& input) {
    graph_.reserve_wait();
    const Row& row = input.first;
    const auto id = engine_.TrySubmit(
        input.second, {.on_text = {}, .on_done = [this, row](RequestResult r) {
                         PutEnded({row, std::move(r)});
                       }});
    if (id.ok()) return;
    RequestResult refused;
    refused.status = id.status();
    PutEnded({row, std::move(refused)});
  }

  void PutEnded(Output output) {
    {
      const std::lock_guard lock(mutex_);
      results_.push_back(std::move(output));
    }
    ended_.activate();
    // Its task is there, or the source is at work and will see the result.
    graph_.release_wait();
  }

  // Called when the result before was taken, or after activate.
  Output TakeEnded(oneapi::tbb::flow_control* control) {
    Output output;
    {
      const std::lock_guard lock(mutex_);
      if (results_.empty()) {
        control->stop();
        return output;
      }
      output = std::move(results_.front());
      results_.pop_front();
    }
    tokens_.try_put(0);
    return output;
  }

  oneapi::tbb::flow::graph& graph_;
  Engine& engine_;
  oneapi::tbb::flow::buffer_node<int> tokens_;
  oneapi::tbb::flow::join_node<Admitted, oneapi::tbb::flow::reserving> admit_;
  oneapi::tbb::flow::function_node<Admitted> submit_;
  oneapi::tbb::flow::input_node<Output> ended_;
  std::mutex mutex_;
  std::deque<Output> results_;  // that nobody has taken yet
};

}  // namespace coldstream

#endif  // COLDSTREAM_RUNTIME_GENERATE_NODE_H_
