#pragma once

#include <string>
#include <vector>

namespace hmc::bench {

struct Point {
  double x = 0;
  double y = 0;
};

struct Stroke {
  std::string colour = "#333333";
  double width = 1;
  std::string dashes;  // "6 4"; empty for a full line
};

enum class Anchor { start, middle, end };

struct Font {
  double size = 12;
  bool bold = false;
  std::string colour = "#222222";
  Anchor anchor = Anchor::start;
  bool upwards = false;  // turned by a quarter, for the label of a vertical axis
};

enum class Marker { circle, square, triangle, diamond, plus };

// Text of an SVG file, element by element. Coordinates are pixels from the top left corner.
class Svg {
 public:
  Svg(double width, double height, const std::string& title);

  void line(Point from, Point to, const Stroke& stroke);
  void path(const std::vector<Point>& points, const Stroke& stroke);
  void text(Point at, const std::string& text, const Font& font);
  // Filled with its colour, or hollow.
  void marker(Marker shape, Point at, const std::string& colour, bool hollow);
  std::string finish() &&;

 private:
  std::string out_;
};

// `text` as it may stand in XML: marks escaped, bytes that are no text replaced.
std::string xmlText(const std::string& text);

}  // namespace hmc::bench
