// A float as the double with the fewest digits that reads back as that float:
// 0.1f is 0.1, not 0.10000000149011612, so JSON is half as long and loses
// nothing.
#ifndef COLDSTREAM_TOOLS_SHORT_FLOAT_H_
#define COLDSTREAM_TOOLS_SHORT_FLOAT_H_

namespace coldstream {

// Values that are not finite stay what they are.
double ShortDouble(float value);

}  // namespace coldstream

#endif  // COLDSTREAM_TOOLS_SHORT_FLOAT_H_
